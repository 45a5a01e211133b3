# SHA-256 (FIPS 180-4). R has it from version 4.5 on, most machines as a program; below is the same in
# base R, which takes about half a minute for a megabyte. A word is a vector of 32 bits, the highest
# first, or the number they stand for.

POWERS <- 2^(31:0)

file_digest <- function(path) {
  built_in <- get0("sha256sum", asNamespace("tools"), mode = "function", inherits = FALSE)
  if (!is.null(built_in)) return(unname(built_in(path)))
  program <- Sys.which("sha256sum")
  if (nzchar(program)) {
    told <- system2(program, c("--", shQuote(path)), stdout = TRUE)
    return(substr(sub("^\\\\", "", told[1]), 1, 64))  # a backslash marks names that had to be escaped
  }
  sha256(readBin(path, "raw", file.size(path)))
}

sha256 <- function(content) {
  words <- schedule(block_words(content))
  state <- first_bits(sqrt(primes(8)))
  for (block in seq_len(ncol(words))) state <- compress(state, words[, block])
  paste(sprintf("%04x%04x", state %/% 65536, state %% 65536), collapse = "")
}

primes <- function(n) {
  found <- 2
  candidate <- 3
  while (length(found) < n) {
    if (all(candidate %% found != 0)) found <- c(found, candidate)
    candidate <- candidate + 2
  }
  found
}

first_bits <- function(x) floor((x %% 1) * 2^32)

# The padded message: 16 words a block, one column each.
block_words <- function(content) {
  zeros <- (55 - length(content)) %% 64
  size <- 8 * length(content)
  length_bytes <- size %/% 256^(7:0) %% 256
  bytes <- c(as.integer(content), 128, numeric(zeros), length_bytes)
  matrix(colSums(matrix(bytes, nrow = 4) * 256^(3:0)), nrow = 16)
}

bits <- function(words) outer(POWERS, words, function(p, w) w %/% p %% 2 == 1)
number <- function(words) colSums(words * POWERS)
rotated <- function(by) (seq_len(32) - 1 - by) %% 32 + 1
shifted <- function(words, by) rbind(matrix(FALSE, by, ncol(words)), words[seq_len(32 - by), , drop = FALSE])

small_sigma <- function(words, first, second, shift) {
  one <- bits(words)
  turned <- xor(one[rotated(first), , drop = FALSE], one[rotated(second), , drop = FALSE])
  number(xor(turned, shifted(one, shift)))
}

# 64 words a block, for all blocks at once.
schedule <- function(words) {
  for (t in 17:64) {
    old <- small_sigma(words[t - 15, ], 7, 18, 3)
    new <- small_sigma(words[t - 2, ], 17, 19, 10)
    words <- rbind(words, (words[t - 16, ] + old + words[t - 7, ] + new) %% 2^32)
  }
  words
}

ROUNDS <- first_bits(primes(64)^(1 / 3))
TURNS <- lapply(c(6, 11, 25, 2, 13, 22), rotated)

compress <- function(state, words) {
  added <- words + ROUNDS
  v <- state  # the eight working words as numbers; below those that are mixed, as bits
  start <- bits(state)
  a <- start[, 1]
  b <- start[, 2]
  cc <- start[, 3]
  e <- start[, 5]
  f <- start[, 6]
  g <- start[, 7]
  for (t in 1:64) {
    mixed <- xor(xor(e[TURNS[[1]]], e[TURNS[[2]]]), e[TURNS[[3]]])
    chosen <- (e & f) | (!e & g)
    first <- v[8] + added[t] + sum(POWERS[mixed]) + sum(POWERS[chosen])
    mixed <- xor(xor(a[TURNS[[4]]], a[TURNS[[5]]]), a[TURNS[[6]]])
    most <- (a & b) | (cc & (a | b))
    second <- sum(POWERS[mixed]) + sum(POWERS[most])
    v <- c((first + second) %% 2^32, v[1:3], (v[4] + first) %% 2^32, v[5:7])
    cc <- b
    b <- a
    a <- v[1] %/% POWERS %% 2 == 1
    g <- f
    f <- e
    e <- v[5] %/% POWERS %% 2 == 1
  }
  (state + v) %% 2^32
}
