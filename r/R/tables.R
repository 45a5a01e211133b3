# Tables with intervals, and the log density of what was drawn.

LEVEL <- 0.9

# A table of the bundle with estimate, sd, and the ends of intervals, whose names say the level.
bundle_table <- function(bundle, which = 1, level = 0.9) {
  if (!(is.numeric(level) && length(level) == 1 && level > 0 && level < 1)) {
    stop("level ", format(level), " is not between 0 and 1. Use 0.9 or 0.95.", call. = FALSE)
  }
  at <- table_place(bundle, which)
  found <- bundle$tables[[at]]
  if (!is.null(bundle$description$parts)) refuse_law("a nation by parts is read with Python")
  if (bundle$kind != "tables") refuse_law(paste0("a bundle of kind '", bundle$kind, "' has no intervals by cells"))
  if (level == LEVEL && "sd" %in% names(found)[number_places(bundle, found)]) return(found)
  if (combined(bundle)) return(with_ends(bundle, at, found, qnorm((1 + level) / 2) * found$sd, level))
  if (at != measured_place(bundle)) refuse_law("the law of sums of the measured table is not in this package")
  with_exact_ends(bundle, at, found, level)
}

# A table by its number, or by the name of its file with or without ".csv".
table_place <- function(bundle, which) {
  files <- names(bundle$tables)
  at <- if (is.character(which)) match(sub("\\.csv$", "", which), sub("\\.csv$", "", files)) else which
  if (!isTRUE(at %in% seq_along(files))) {
    stop("the bundle has no table '", format(which), "'. It has ", paste(files, collapse = ", "), ".", call. = FALSE)
  }
  at
}

ends_named <- function(level) paste0(c("low_", "high_"), format(100 * level, digits = 4, trim = TRUE))

# One table: from the law of the noise in each cell.
with_exact_ends <- function(bundle, at, found, level) {
  law <- noise_law(bundle)
  sizes <- tabulate_groups(figure_groups(bundle, found))
  known <- unique(sizes)
  spread <- lapply(known, function(n) cell_spread(law, n, level))
  place <- match(sizes, known)
  found$sd <- vapply(spread, function(one) one$sd, 0)[place]
  with_ends(bundle, at, found, vapply(spread, function(one) one$half, 0)[place], level)
}

# Ends are whole, not negative, no larger than what is published, and reach to the printed count.
with_ends <- function(bundle, at, found, half, level) {
  most <- most_people(bundle, at, found)
  low <- pmax(0, floor(pmin(found$estimate, most) - half))
  high <- pmin(most, ceiling(pmax(found$estimate, 0) + half))
  if (is.numeric(found[["count"]])) {
    low <- pmin(low, found$count)
    high <- pmax(high, found$count)
  }
  names(found)[match(ends_named(LEVEL), names(found))] <- ends_named(level)
  found[ends_named(level)] <- list(low, high)
  found
}

# How many people each cell can have: no more than a published number of people that contains it.
most_people <- function(bundle, at, found) {
  most <- rep(Inf, nrow(found))
  table <- unlist(bundle$description$tables[[at]])
  for (one in bundle$published$statements) {
    if (!plain_sum(one)) next
    values <- as.numeric(unlist(one$values))
    labels <- lapply(one$by, function(axis) labels_along(bundle, found, axis, table))
    place <- rep(0, nrow(found))
    if (any(vapply(labels, is.null, NA))) {
      values <- sum(values)
    } else {
      for (own in labels) place <- place * length(unique(own)) + match(own, unique(own)) - 1
    }
    most <- pmin(most, values[place + 1])
  }
  most
}

# Is a statement a number of people, without a condition?
plain_sum <- function(one) one$relation == "=" && length(one$terms) == 1 && identical(one$terms[[1]], list("", 1L))

# n: how many cells a published sum ties together; NA for a cell that no figure ties.
cell_spread <- function(law, n, level) {
  if (is.na(n) && !law$whole) {
    half <- if (law$family == "gaussian") qnorm((1 + level) / 2) * sqrt(law$variance) else qexp(level, law$parameter)
    return(list(sd = sqrt(law$variance), half = half))
  }
  if (is.na(n)) {
    reach <- ceiling(40 * sqrt(law$variance)) + 1
    chances <- law$density(-reach:reach)
  } else {
    chances <- conditioned_cell(law, n)
    reach <- (length(chances) - 1) / 2
  }
  x <- -reach:reach
  inside <- cumsum(c(chances[x == 0], 2 * chances[x > 0]))
  list(sd = sqrt(sum(x^2 * chances)), half = which(inside >= level)[1] - 1)
}

# The measured table as drawn.
drawn_values <- function(bundle) bundle$tables[[measured_place(bundle)]]$estimate

# Which cells a published figure adds up: a number for each cell, or NULL where there is no figure.
figure_groups <- function(bundle, found) {
  told <- only_law(bundle)
  statements <- told$support$statements
  if (told$mechanism %in% INDEPENDENT || length(statements) == 0) return(NULL)
  groups <- lapply(statements, function(one) {
    if (!plain_sum(one)) refuse_law(paste0("the figure '", one$label, "' is no plain sum of people"))
    labels <- lapply(one$by, function(axis) {
      own <- labels_along(bundle, found, axis, unlist(told[["table"]]))
      if (is.null(own)) refuse_law(paste0("a published figure is by '", axis, "', which is no axis of the table"))
      own
    })
    group_numbers(labels, nrow(found))
  })
  finest <- groups[[which.max(vapply(groups, max, 0))]]
  for (one in groups) {
    pairs <- unique(data.frame(finest, one))
    if (nrow(pairs) > max(finest)) refuse_law("the published figures cross")
  }
  finest
}

group_numbers <- function(labels, rows) {
  if (length(labels) == 0) return(rep(1, rows))
  keys <- lapply(labels, function(one) match(one, unique(one)))
  key <- do.call(paste, keys)
  as.numeric(match(key, unique(key)))
}

# The label of every cell on an axis of the table, or on a coarser name of one; NULL if there is none.
labels_along <- function(bundle, found, axis, table) {
  at <- match(axis, table)
  places <- axis_places(table, found)
  if (!is.na(at)) return(found[[places[at]]])
  for (name in names(bundle$schema)) {
    within <- bundle$schema[[name]]$within
    if (!axis %in% names(within)) next
    for (own in intersect(table, c(name, names(within)))) {
      labels <- found[[places[match(own, table)]]]
      levels <- if (own == name) unique(labels) else unlist(within[[own]])
      return(unlist(within[[axis]])[match(labels, levels)])
    }
  }
  NULL
}

tabulate_groups <- function(groups) if (is.null(groups)) NA else tabulate(groups)[groups]

# log p(values as drawn | counts): -Inf where they do not agree with the exact figures.
log_density <- function(bundle, counts, values = NULL) {
  density_of(bundle)(if (is.null(values)) drawn_values(bundle) else values, counts)
}

# The same as a function, so that what does not change is worked out once.
density_of <- function(bundle) {
  law <- noise_law(bundle)
  found <- bundle$tables[[measured_place(bundle)]]
  groups <- figure_groups(bundle, found)
  if (isTRUE(only_law(bundle)$nonnegative)) refuse_law("the noise was conditioned on counts of 0 and more")
  normaliser <- 0
  if (!is.null(groups)) {
    sizes <- tabulate(groups)
    chances <- vapply(unique(sizes), function(n) sum_law(law, n, 0), 0)
    normaliser <- sum(log(chances)[match(sizes, unique(sizes))])
  }
  function(values, counts) {
    u <- as.numeric(values) - as.numeric(counts)
    if (length(u) != nrow(found)) stop("a table of ", nrow(found), " cells cannot have ", length(u), " counts.", call. = FALSE)
    if (!is.null(groups) && any(abs(rowsum(u, groups)) > 0)) return(-Inf)
    sum(law$density(u, log = TRUE)) - normaliser
  }
}
