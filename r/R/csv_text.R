# CSV as Congenial writes it. A text that a spreadsheet would take for a formula begins with one
# apostrophe that is not part of it; the rule is in the reference of bundles (docs/reference/bundle.md).

BLANK <- "[\\t-\\r\\x1c-\\x20\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}]"
FORMULA <- paste0("(*UTF)^'*(?:", BLANK, "*[=+\\-@\\x{FF1D}\\x{FF0B}\\x{FF0D}\\x{FF20}]|[\\t\\r\\n])")
NUMBER <- "^'*[ \\t-\\r]*[+-](?:[0-9]+\\.?[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?\\z"

is_formula <- function(text) grepl(FORMULA, text, perl = TRUE) & !grepl(NUMBER, text, perl = TRUE)

# The texts that cells of a CSV file stand for.
original_text <- function(cells) {
  cells <- enc2utf8(as.character(cells))
  marked <- startsWith(cells, "'") & is_formula(cells)
  cells[marked] <- substring(cells[marked], 2)
  cells
}

# Columns as text, labels as they were.
read_text_columns <- function(path) {
  found <- read.csv(
    path, colClasses = "character", check.names = FALSE, encoding = "UTF-8", na.strings = character(0)
  )
  names(found) <- original_text(names(found))
  found[] <- lapply(found, original_text)
  found
}

# The columns at these places become numbers.
with_numbers <- function(columns, places) {
  columns[places] <- lapply(columns[places], function(text) as.numeric(replace(text, text == "", NA)))
  columns
}
