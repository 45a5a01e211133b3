# Rscript answers.R LIBRARY QUESTIONS.json: what the R package says about the bundles named there.
arguments <- commandArgs(trailingOnly = TRUE)
library(congenial, lib.loc = arguments[1])
asked <- jsonlite::fromJSON(arguments[2], simplifyVector = FALSE)
said <- function(expression) tryCatch(expression, error = function(reason) list(error = conditionMessage(reason)))
columns <- function(table) list(names = names(table), columns = unname(lapply(table, identity)))

of_bundle <- function(one) {
  bundle <- read_bundle(one$folder)
  list(
    raw = columns(bundle$tables[[1]]),
    table = said(columns(bundle_table(bundle, level = one$level))),
    filed = said(columns(bundle_table(bundle))),
    files = names(bundle$tables),
    verified = all(verify_bundle(one$folder, one$digest)$holds),
    figures = columns(published_figures(bundle)),
    sums = said(lapply(list(
      estimate_sum(bundle, ~ county != "=A&B" & `sd (label)` != "20+"),
      estimate_share(bundle, ~ `sd (label)` == "0-9", ~ county == "'@x"),
      estimate_share(bundle, ~ `sd (label)` == "0-9", ~ county == "Größe <1>"),
      estimate_sum(bundle, ~ county == "'@x"),
      estimate_median(bundle, "sd", ~ county == "'@x")
    ), columns)),
    named = said(identical(bundle_table(bundle, sub(".csv", "", names(bundle$tables)[1], fixed = TRUE)), bundle$tables[[1]])),
    density = said(vapply(one$counts, function(counts) log_density(bundle, unlist(counts)), 0))
  )
}

# dapper's chain needs packages that are not here: its four functions are called as it calls them.
of_dapper <- function(one) {
  pieces <- dapper_pieces(
    read_bundle(one$folder),
    posterior_f = function(dmat, theta) theta, latent_f = function(theta) as.matrix(theta), npar = 1,
    since_1_1 = one$since_1_1
  )
  model <- pieces$model
  records <- do.call(rbind, lapply(one$records, unlist))
  terms <- lapply(seq_len(nrow(records)), function(i) model[[4]](records[i, ], pieces$sdp, i))
  counts <- Reduce(`+`, terms)
  list(names = names(model), counts = counts, density = model[[3]](pieces$sdp, counts), levels = pieces$levels)
}

answers <- list(
  bundles = lapply(asked$bundles, of_bundle),
  dapper = lapply(asked$dapper, of_dapper),
  packages = lapply(asked$packages, function(folder) lapply(read_package(folder), columns)),
  verified = lapply(asked$verify, function(folder) said(verify_bundle(folder))),
  texts = original_text(unlist(asked$texts)),
  digests = vapply(asked$hashed, function(size) {
    congenial:::sha256(as.raw(seq_len(size) %% 251))
  }, ""),
  densities = list(
    double_geometric = ddouble_geometric(-3:9, 0.3, log = TRUE),
    discrete_gaussian = ddiscrete_gaussian(-3:9, 2.5, log = TRUE),
    laplace = dlaplace_noise(c(-1.5, 0, 7.25), 0.3, log = TRUE),
    off = ddouble_geometric(0.5, 0.3)
  )
)
numbers <- jsonlite::toJSON(answers, digits = NA, auto_unbox = FALSE, null = "list", na = "string")
writeLines(numbers, arguments[3], useBytes = TRUE)
