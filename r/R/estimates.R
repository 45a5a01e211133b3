# Sums, shares and medians with intervals, from the law of the noise in release.json.

SIMULATED <- 10000
SEED <- 20260101  # the same noise whenever it is asked: intervals do not change between two calls

# People who meet a condition, such as ~ sex == "f" & county == "A"; everybody without one.
estimate_sum <- function(bundle, where = ~ TRUE, level = 0.9) {
  of <- matrix(rows_where(bundle, where), 1)
  sums <- simulated_sums(bundle, of)
  half <- reach(abs(sums$errors[1, ]), level)
  answer("sum", sums$values[1], max(0, sums$values[1] - half), max(0, sums$values[1]) + half, level)
}

# Among people who meet `whole`, the share of those who meet `part`.
estimate_share <- function(bundle, part, whole = ~ TRUE, level = 0.9) {
  inside <- rows_where(bundle, whole)
  sums <- simulated_sums(bundle, rbind(rows_where(bundle, part) & inside, inside))
  below <- sums$values[2] - sums$errors[2, ]
  spread <- sd(sums$errors[2, ])
  if (sums$values[2] <= 0 || sums$values[2] < CLEAR * spread) {
    return(answer("share (not determined: the denominator is too small beside the noise)", NA, 0, 1, level))
  }
  shares <- pmin(1, pmax(0, (sums$values[1] - sums$errors[1, ]) / pmax(below, 1e-9)))
  value <- min(1, max(0, sums$values[1] / sums$values[2]))
  if (spread == 0) {  # the denominator is published
    half <- reach(abs(sums$errors[1, ]), level)
    inwards <- c(min(sums$values[1], sums$values[2]), max(sums$values[1], 0))  # where an estimate cannot be
    ends <- pmin(1, pmax(0, (inwards + c(-half, half)) / sums$values[2]))
    return(answer("share", value, ends[1], ends[2], level))
  }
  tail <- SIMULATED - rank_of(level)
  ordered <- sort(shares)
  answer("share", value, ordered[max(1, tail %/% 2)], ordered[SIMULATED + 1 - max(1, tail %/% 2)], level)
}

# The median of an attribute in bins: interpolated inside its bin; an interval of whole bins.
estimate_median <- function(bundle, attribute, where = ~ TRUE, level = 0.9) {
  edges <- as.numeric(unlist(bundle$schema[[attribute]]$edges))
  if (length(edges) == 0) stop("'", attribute, "' has no edges, so it has no median here.", call. = FALSE)
  found <- measured_frame(bundle)
  labels <- found[[axis_places(attribute, found)]]
  levels <- unique(labels)
  bins <- levels[seq_len(length(edges) - is.null(bundle$schema[[attribute]]$top))]
  inside <- rows_where(bundle, where) & labels %in% bins
  below <- t(vapply(seq_along(bins), function(k) inside & labels %in% bins[seq_len(k)], inside))
  sums <- simulated_sums(bundle, below)
  last <- length(bins)
  cuts <- sums$values - sums$values[last] / 2
  errors <- sweep(sums$errors, 2, sums$errors[last, ] / 2)
  halves <- apply(abs(errors), 1, reach, level = level)
  lower <- c(edges, Inf)[seq_along(bins)]
  upper <- c(edges, Inf)[seq_along(bins) + 1]
  first <- which(cuts >= -halves)[1]
  final <- which(cuts > halves)[1]
  at <- which(cummax(cuts) >= 0)[1]
  before <- if (at == 1) -sums$values[last] / 2 else cuts[at - 1]
  value <- lower[at] - before / (cuts[at] - before) * (upper[at] - lower[at])
  answer("median", value, lower[first], if (is.na(final)) upper[last] else upper[final], level)
}

CLEAR <- 6  # standard deviations of its noise that a denominator has to exceed

answer <- function(of, value, low, high, level) {
  setNames(data.frame(of, value, low, high), c("of", "value", ends_named(level)))
}

# An upper confidence bound of a quantile of simulated errors, wrong with probability 1e-6.
rank_of <- function(level) min(SIMULATED, qbinom(1 - 1e-6, SIMULATED, level) + 1)
reach <- function(sizes, level) sort(sizes)[rank_of(level)]

measured_frame <- function(bundle) bundle$tables[[measured_place(bundle)]]

# Which cells of the measured table a condition holds for.
rows_where <- function(bundle, where) {
  found <- measured_frame(bundle)
  if (!inherits(where, "formula")) stop("Write a condition as a formula, such as ~ sex == \"f\".", call. = FALSE)
  rep_len(as.logical(eval(where[[length(where)]], found, environment(where))), nrow(found))
}

# Sums of the estimates, one for each row of `of`, and joint draws of their errors.
simulated_sums <- function(bundle, of) {
  law <- noise_law(bundle)
  found <- measured_frame(bundle)
  groups <- figure_groups(bundle, found)
  before <- get0(".Random.seed", envir = globalenv(), inherits = FALSE)
  on.exit(if (!is.null(before)) assign(".Random.seed", before, envir = globalenv()))
  set.seed(SEED)
  errors <- matrix(0, nrow(of), SIMULATED)
  for (cells in if (is.null(groups)) as.list(seq_len(nrow(found))) else split(seq_len(nrow(found)), groups)) {
    errors <- errors + group_errors(law, of[, cells, drop = FALSE] + 0, !is.null(groups))
  }
  list(values = as.numeric(of %*% found$estimate), errors = errors)
}

# Draws of weighted sums of the noise in some cells; `tied`: given that it adds up to zero.
group_errors <- function(law, weights, tied) {
  n <- ncol(weights)
  if (!tied && !law$whole) {
    one <- if (law$family == "gaussian") rnorm(SIMULATED, 0, sqrt(law$variance))
    else rexp(SIMULATED, law$parameter) * sample(c(-1, 1), SIMULATED, TRUE)
    return(weights %*% matrix(one, 1))
  }
  spread <- sqrt(law$variance)
  most <- ceiling(20 * spread) + 1
  chances <- law$density(-most:most)
  if (!tied) return(weights %*% matrix(sample(-most:most, SIMULATED, TRUE, chances), 1))
  found <- matrix(0, nrow(weights), SIMULATED)
  left <- numeric(SIMULATED)  # what the noise of the remaining cells adds up to
  for (i in seq_len(n)) {
    drawn <- left
    if (i < n) {
      range <- max(abs(left)) + most
      rest <- if (n - i == 1) pad(chances, most, range) else sum_law(law, n - i, range)
      for (own in unique(left)) {
        here <- which(left == own)
        odds <- chances * rest[own - (-most:most) + range + 1]
        drawn[here] <- sample(-most:most, length(here), TRUE, odds)
      }
    }
    found <- found + weights[, i] %o% drawn
    left <- left - drawn
  }
  found
}

# Probabilities at -most..most as probabilities at -range..range.
pad <- function(chances, most, range) c(rep(0, range - most), chances, rep(0, range - most))
