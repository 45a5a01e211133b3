# Laws of the noise in one cell, and of the noise in cells whose sums were published exactly.

# p(x) = (1 - a) / (1 + a) * a^|x| with a = exp(-eps_cell), on the integers.
ddouble_geometric <- function(x, eps_cell, log = FALSE) {
  found <- ifelse(x == round(x), log(tanh(eps_cell / 2)) - eps_cell * abs(x), -Inf)
  if (log) found else exp(found)
}

# p(x) ~ exp(-x^2 / (2 sigma_squared)) on the integers.
ddiscrete_gaussian <- function(x, sigma_squared, log = FALSE) {
  reach <- ceiling(sqrt(sigma_squared) * 40) + 1
  normaliser <- log(sum(exp(-(-reach:reach)^2 / (2 * sigma_squared))))
  found <- ifelse(x == round(x), -x^2 / (2 * sigma_squared) - normaliser, -Inf)
  if (log) found else exp(found)
}

# p(x) = eps_cell / 2 * exp(-eps_cell |x|) on the reals.
dlaplace_noise <- function(x, eps_cell, log = FALSE) {
  found <- log(eps_cell / 2) - eps_cell * abs(x)
  if (log) found else exp(found)
}

FAMILIES <- list(
  double_geometric = list(whole = TRUE, density = ddouble_geometric, variance = function(e) 1 / (2 * sinh(e / 2)^2)),
  discrete_gaussian = list(whole = TRUE, density = ddiscrete_gaussian, variance = function(s) {
    x <- 0:ceiling(40 * sqrt(s) + 1)
    2 * sum(x^2 * ddiscrete_gaussian(x, s))
  }),
  laplace = list(whole = FALSE, density = dlaplace_noise, variance = function(e) 2 / e^2),
  gaussian = list(whole = FALSE, density = function(x, s, log = FALSE) dnorm(x, 0, sqrt(s), log), variance = identity)
)
INDEPENDENT <- c("plain_geometric", "plain_discrete_gaussian", "plain_laplace", "plain_gaussian")
CONDITIONED <- c("congenial", "congenial_gaussian")

# The law of the noise in one cell before it is conditioned on exact figures.
noise_law <- function(bundle) {
  told <- only_law(bundle)
  if (!isTRUE(told$mechanism %in% c(INDEPENDENT, CONDITIONED))) {
    refuse_law(paste0("the noise of mechanism '", told$mechanism, "' has no density by cells in this package"))
  }
  law <- FAMILIES[[told$family]]
  parameter <- as_number(told$parameter[[1]])
  list(
    family = told$family, parameter = parameter, whole = law$whole, variance = law$variance(parameter),
    density = function(x, log = FALSE) law$density(x, parameter, log)
  )
}

refuse_law <- function(why) {
  stop(why, ". `congenial export BUNDLE --to datapackage --out FOLDER` writes intervals for every cell ",
    "where there are any; read them with read_package().", call. = FALSE)
}

as_number <- function(fraction) {
  parts <- as.numeric(strsplit(as.character(fraction), "/", fixed = TRUE)[[1]])
  if (length(parts) == 2) parts[1] / parts[2] else parts[1]
}

# Probabilities of the sum of n cells at -reach..reach, by Fourier's transform on a wide circle.
sum_law <- function(law, n, reach) {
  sd <- sqrt(law$variance)
  width <- 2^ceiling(log2(2 * reach + 2 + 60 * sd * (sqrt(n) + 1)))
  x <- seq_len(width) - 1
  one <- law$density(pmin(x, width - x))
  sums <- Re(fft(fft(one)^n, inverse = TRUE)) / width
  pmax(0, sums[seq(-reach, reach) %% width + 1])
}

# Probabilities of one cell's noise at -reach..reach, given that n cells with it add up to zero.
conditioned_cell <- function(law, n) {
  reach <- ceiling(40 * sqrt(law$variance)) + 1
  own <- law$density(-reach:reach)
  if (n > 1) own <- own * sum_law(law, n - 1, reach)
  else own[-(reach + 1)] <- 0
  own / sum(own)
}
