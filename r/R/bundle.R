# A bundle: a folder with release.json, which lists the digest of every other file.

INDEX <- "release.json"
DIGEST <- "DIGEST.txt"
SIGNATURE <- "release.json.sig"
FORMAT <- 1

# Read a bundle; `verify_bundle` checks it.
read_bundle <- function(folder) {
  index <- read_index(folder)
  files <- setdiff(grep("\\.csv$", names(index$files), value = TRUE), "published.csv")
  files <- files[order(nchar(sub("^([a-z]+-[0-9]*).*", "\\1", files)), files)]  # table-2 before table-10
  tables <- lapply(files, function(name) {
    columns <- read_text_columns(file.path(folder, name))
    with_numbers(columns, number_places(index, columns))
  })
  structure(
    list(
      folder = folder, name = index$name, kind = index$kind, promise = index$promise,
      publishable = isTRUE(index$publishable), description = index$description,
      schema = read_json(folder, "schema.json"),
      published = read_json(folder, "published.json"), tables = setNames(tables, files)
    ),
    class = "congenial_bundle"
  )
}

print.congenial_bundle <- function(x, ...) {
  cat("bundle '", x$name, "' (", x$kind, ")\n", sep = "")
  for (name in names(x$tables)) cat("  ", name, ": ", nrow(x$tables[[name]]), " rows\n", sep = "")
  cat(strwrap(x$promise, 90, prefix = "  "), sep = "\n")
  invisible(x)
}

read_index <- function(folder) {
  if (!file.exists(file.path(folder, INDEX))) {
    stop("there is no bundle in '", folder, "'. Give the bundle's own folder, the one with ", INDEX, ".", call. = FALSE)
  }
  index <- read_json(folder, INDEX)
  if (!identical(as.numeric(index$bundle), FORMAT)) {
    stop("'", folder, "' is not a bundle in the format that this package reads. ",
      "Read it with the version of congenial that wrote it.", call. = FALSE)
  }
  names <- names(index$files)
  if (any(basename(names) != names | names %in% c(".", ".."))) {
    stop(INDEX, " lists files outside the bundle's folder. Do not use this bundle.", call. = FALSE)
  }
  index
}

read_json <- function(folder, name) {
  text <- readLines(file.path(folder, name), warn = FALSE, encoding = "UTF-8")
  jsonlite::fromJSON(paste(text, collapse = "\n"), simplifyVector = FALSE)
}

NUMBERS <- c("count", "count_as_drawn", "estimate", "sd", "low_90", "high_90", "value", "standard_error", "uniform")

# The law of the one table that was measured, and the figures it was drawn given.
only_law <- function(bundle) {
  if (bundle$kind != "tables" || combined(bundle)) {
    refuse_law(paste0("bundle '", bundle$name, "' (", bundle$kind, ") has no law of one measured table"))
  }
  c(bundle$description$measured[[1]], bundle$description["support"])
}

# Are estimates combined from several tables? Otherwise they are as drawn, or sums of these.
combined <- function(bundle) {
  has_draws <- function(found) "count_as_drawn" %in% names(found)[number_places(bundle, found)]
  any(vapply(bundle$tables, has_draws, NA))
}

# Which of the tables was measured.
measured_place <- function(bundle) match(list(only_law(bundle)[["table"]]), bundle$description$tables)

# Where numbers stand: a label column called like one of them ends with "(label)" where both are there.
number_places <- function(bundle, columns) {
  description <- bundle$description
  law <- description[["law"]]
  axes <- unlist(c(description[["tables"]], description[["table"]], if (is.list(law)) law[["table"]]))
  names <- names(columns)
  which(names %in% NUMBERS & (!names %in% axes | paste(names, "(label)") %in% names))
}

# Where the codes of a table's axes stand; labels may stand beside them.
axis_places <- function(axes, found) {
  match(ifelse(axes %in% NUMBERS & paste(axes, "(label)") %in% names(found), paste(axes, "(label)"), axes), names(found))
}

# Is the folder as its publisher left it? One row for each check.
verify_bundle <- function(folder, digest = NULL) {
  index <- read_index(folder)
  actual <- file_digest(file.path(folder, INDEX))
  stated <- trimws(readLines(file.path(folder, DIGEST), warn = FALSE)[1])
  what <- paste(INDEX, "matches", DIGEST)
  holds <- identical(actual, stated)
  if (!is.null(digest)) {
    what <- c(what, paste(INDEX, "matches the digest you gave"))
    holds <- c(holds, identical(actual, trimws(digest)))
  }
  files <- sort(names(index$files))
  same <- vapply(files, function(name) is_as_released(folder, name, index$files[[name]]), logical(1))
  known <- c(files, INDEX, DIGEST, SIGNATURE)
  extra <- setdiff(list.files(folder, all.files = TRUE, no.. = TRUE), known)
  data.frame(
    what = c(what, paste(files, "is as released"), "nothing was added"),
    holds = c(holds, unname(same), length(extra) == 0),
    detail = c(rep("", length(what) + length(files)), paste(extra, collapse = ", "))
  )
}

is_as_released <- function(folder, name, expected) {
  path <- file.path(folder, name)
  link <- Sys.readlink(path)
  own <- file.exists(path) && !dir.exists(path) && (is.na(link) || link == "")
  own && identical(file_digest(path), expected)
}

# The exact figures and public bounds, one row for each value.
published_figures <- function(bundle) {
  found <- read_text_columns(file.path(bundle$folder, "published.csv"))
  with_numbers(found, match("value", names(found)))
}

# The tables of a Data Package that `congenial export BUNDLE --to datapackage` wrote.
read_package <- function(folder) {
  package <- read_json(folder, "datapackage.json")
  tables <- lapply(package$resources, function(resource) {
    types <- vapply(resource$schema$fields, function(field) field$type, "")
    columns <- read_text_columns(file.path(folder, basename(resource$path)))
    with_numbers(columns, which(types != "string"))
  })
  setNames(tables, vapply(package$resources, function(resource) resource$name, ""))
}
