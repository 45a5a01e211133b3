"""The Consumer Expenditure quarter at hand: 2016 Q1, 6,426 consumer units, income as reported.

It differs from the paper's sample (2017 Q1, n = 6,208), which is not to be had:

- income is as reported, without imputation: 619 incomes are 0 and 4 negative, where imputation
  leaves few. A logarithm does not take them; asinh of thousands of dollars does, and equals
  log(2 y) from a few thousand dollars on;
- the population size of the area (5 classes) stands for urban type and CBSA status; region has a
  fifth class, not given; that makes 36 indicators and a constant (the paper's table: 35).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from congenial.errors import DataError
from congenial.papers.item import Study
from congenial.synthesis.mixture import indicators
from congenial.synthesis.record_model import Floats

UNIT = 1000.0  # dollars
FILE = "ce/ce_2016q1_table1_like.csv.gz"

# a common level of each column first: it is the one without an indicator
LEVELS: dict[str, tuple[str, ...]] = {
    "gender": ("M", "F"),
    "age": ("50-64", "<25", "25-34", "35-49", "65+"),
    "education": ("4", "1", "2", "3", "5", "6", "7", "8"),
    "region": ("3", "1", "2", "4", "NA"),
    "urban": ("1", "2"),
    "marital": ("1", "2", "3", "4", "5"),
    "popsize": ("2", "1", "3", "4", "5"),
    "family_size": ("2", "1", "3", "4", "5", "6", "7", "8", "9", "10", "11"),
    "earner": ("Y", "N"),
}
KNOWN = ("gender", "age", "region")  # what Hu et al. let an intruder know

DIFFERS = (
    "data: Consumer Expenditure Survey 2016 Q1, n = 6,426, income as reported (623 values <= 0); "
    "the paper's is 2017 Q1, n = 6,208, imputed; its values are not expected to be met",
    "asinh(income / 1,000) in place of log(income), and sigma_k >= 0.05: with repeated incomes "
    "the posterior of Appendix B is improper",
)


@dataclass(frozen=True, eq=False)
class Sample:
    """One row per consumer unit: the categorical columns by name, and family income in dollars."""

    columns: dict[str, Any]
    income: Floats

    @cached_property
    def predictors(self) -> Floats:
        """36 indicators; of a part of the sample those that vary."""
        design = indicators([self.columns[name] for name in LEVELS], list(LEVELS.values()))
        return design[:, np.ptp(design, axis=0) > 0]

    @cached_property
    def records(self) -> Floats:
        """Rows as the mixture takes them: predictors, then income in thousands."""
        return np.column_stack([self.predictors, self.income / UNIT])

    @cached_property
    def known(self) -> Any:
        """A label per record for what an intruder knows."""
        return np.unique(
            np.stack([self.columns[name] for name in KNOWN], axis=1), axis=0, return_inverse=True
        )[1].reshape(-1)

    def part(self, step: int) -> Sample:
        """Every step-th record, for a quick look."""
        some = {name: values[::step] for name, values in self.columns.items()}
        return Sample(some, self.income[::step])


def read(study: Study) -> Sample:
    """The quarter. The region 'NA' is a label: nothing in the file is read as missing."""
    import duckdb

    path = study.file(FILE)
    names = ", ".join(f'"{name}"' for name in (*LEVELS, "family_income"))
    query = f"SELECT {names} FROM read_csv(?, header = true, all_varchar = true, nullstr = '')"
    with duckdb.connect() as connection:
        records = connection.execute(query, [str(path)]).fetch_arrow_table()
    if any(records[name].null_count for name in records.column_names):
        raise DataError(f"{FILE} has empty fields.", remedy="Give the file as it was published.")
    columns = {name: np.asarray(records[name].to_pylist(), dtype=str) for name in LEVELS}
    return Sample(columns, np.asarray(records["family_income"].to_pylist(), dtype=float))
