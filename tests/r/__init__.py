"""The package for R, run by Rscript and compared with Python."""
