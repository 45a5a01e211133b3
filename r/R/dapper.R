# What `dapper` asks for, as plain lists.

NAMES_SINCE_1_1 <- c("posterior_f", "latent_f", "mechanism_f", "statistic_f")
NAMES_BEFORE <- c("post_f", "latent_f", "priv_f", "st_f")

# A record is a row of level numbers, one for each axis of the table.
dapper_pieces <- function(bundle, posterior_f, latent_f, npar, varnames = NULL, since_1_1 = TRUE) {
  found <- bundle$tables[[measured_place(bundle)]]
  named <- unlist(only_law(bundle)[["table"]])
  axes <- axis_places(named, found)
  sizes <- vapply(axes, function(at) length(unique(found[[at]])), 0)
  strides <- rev(cumprod(c(1, rev(sizes))))[-1]  # the last axis runs fastest
  cells <- prod(sizes)
  statistic <- function(xi, sdp, i) {
    counted <- numeric(cells)
    counted[1 + sum((xi - 1) * strides)] <- 1
    counted
  }
  density <- density_of(bundle)
  mechanism <- function(sdp, sx) density(sdp, sx)
  model <- setNames(
    list(posterior_f, latent_f, mechanism, statistic),
    if (since_1_1) NAMES_SINCE_1_1 else NAMES_BEFORE
  )
  list(
    model = c(model, list(npar = npar, varnames = varnames)),
    sdp = drawn_values(bundle),
    levels = lapply(setNames(axes, named), function(at) unique(found[[at]]))
  )
}
