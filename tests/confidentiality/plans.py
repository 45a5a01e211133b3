"""A plan of each kind of release."""

from __future__ import annotations

_DATA = """
[data]
source = "people.csv"
unit = "id"
[schema]
"""

TABLE = (
    _DATA.replace(".csv", ".parquet")
    + """county = { levels = ["A", "B", "C"] }
sex = { levels = ["f", "m"] }
age = { edges = [0, 18, 65], top = "65+" }
[publish]
"Population" = { total = true, by = ["county"], because = "statute" }
[[release]]
name = "made"
table = ["county", "sex", "age"]
epsilon = 0.1
nonnegative = "project"
[budget]
epsilon = 2
delta = 1e-6
"""
)

STATISTICS = (
    _DATA
    + """sex = { levels = ["f", "m"] }
age = { integers = [0, 109] }
[[release]]
name = "made"
statistics = { "mean age" = { mean = "age" } }
protect = { share = "sex = 'f'", between = 0.25, and = 0.35 }
modelling = "modelling.csv"
records = 200
replications = 120
epsilon = 1
delta = 0.001
persons = "not protected"
[budget]
epsilon = 3
delta = 1e-6
"""
)

SYNTHETIC = (
    _DATA
    + """county = { levels = ["A", "B", "C"] }
age = { edges = [0, 18, 65], top = "65+" }
[publish]
"Population" = { total = true, by = ["county"], because = "statute" }
[[release]]
name = "made"
epsilon = 8
copies = 1
[release.model]
county = { floor = 0.02 }
age = { floor = 0.02 }
[budget]
epsilon = 10
"""
)

PARTIAL = SYNTHETIC.replace("county = { floor = 0.02 }\n", "").replace(
    "epsilon = 8\n", 'M = 0.5\npublic = ["county"]\n'
)

SEX_BY_AGE = (
    _DATA
    + """sex = { levels = ["f", "m"] }
age = { edges = [0, 18, 65], top = "65+" }
[publish]
"Population" = { total = true, because = "statute" }
"""
)

GIVEN = (
    SEX_BY_AGE
    + """
[[release]]
name = "made"
table = ["sex", "age"]
scenarios = { believe = "independent records" }
given = ["last year's table"]
base_measure = { prior = "earlier.csv", alpha = 0.1, kappa = 0.5 }
epsilon = 0.1
[budget]
epsilon = 2
"""
)

BOUNDED = (
    SEX_BY_AGE
    + """
"Some children" = { count = "age < 18", at_least = 1, because = "statute" }
[[release]]
name = "made"
table = ["sex", "age"]
epsilon = 1
nonnegative = "condition"
[budget]
epsilon = 2
"""
)

TEST = (
    _DATA
    + """sex = { levels = ["f", "m"] }
age = { edges = [0, 18], top = "18+" }
[publish]
"By sex" = { total = true, by = ["sex"], because = "statute" }
"By age" = { total = true, by = ["age"], because = "statute" }
[[release]]
name = "made"
test = { odds_ratio = ["sex", "age"], alternative = "two-sided" }
epsilon = 0.1
[budget]
epsilon = 2
"""
)

SEVERAL = (
    TABLE[: TABLE.index("[[release]]")]
    + """
[[release]]
name = "made"
tables = [["county", "sex", "age"], ["county", "age"], ["sex"]]
epsilon = 0.1
[budget]
epsilon = 2
"""
)

PARTED = (
    TABLE[: TABLE.index("[[release]]")].replace(
        '"C"] }\n', '"C"], within = { state = ["N", "N", "S"] } }\n', 1
    )
    + """
[[release]]
name = "made"
tables = [["county", "sex", "age"], ["state", "age"], ["sex"]]
parts = "state"
workers = 1
rho = 0.1
[budget]
rho = 1
"""
)

RECORDS = (
    TABLE[: TABLE.index("[[release]]")].replace("people.parquet", "people.csv")
    + """
[[release]]
name = "made"
synthesise = ["county", "sex", "age"]
rho = 0.1
rounds = 1
[budget]
rho = 1
"""
)

QUANTILES = RECORDS.replace(
    'age = { edges = [0, 18, 65], top = "65+" }', "age = { integers = [0, 109] }"
).replace("rounds = 1", 'rounds = 1\nquantiles = { age = 4 }\nmade_up = { person = "identifier" }')

ESTIMATE = (
    _DATA
    + """sex = { levels = ["f", "m"] }
age = { integers = [0, 109] }
[[release]]
name = "made"
estimate = { quantile = "age", at = 0.25, between = [0, 110] }
epsilon = 0.1
[budget]
epsilon = 2
"""
)
