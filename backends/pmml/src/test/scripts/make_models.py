"""Makes the PMML documents in src/test/resources/pmml: trains small models with scikit-learn, writes them down as PMML, and
puts rows with scikit-learn's answers beside them (NAME.expected: the fields, then the outputs, of a row in a line).

    pip install scikit-learn pandas
    python make_models.py
"""

import pathlib

import numpy as np
import pandas as pd
from sklearn.datasets import load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier

ROOT = pathlib.Path(__file__).resolve().parents[1] / "resources" / "pmml"
ROOT.mkdir(parents=True, exist_ok=True)

FIELDS = ["sepal_length", "sepal_width", "petal_length", "petal_width"]
SPECIES = ["setosa", "versicolor", "virginica"]
X, y = load_iris(return_X_y=True)


def document(dictionary, model):
    return f"""<?xml version="1.0" encoding="UTF-8"?>
<PMML xmlns="http://www.dmg.org/PMML-4_4" version="4.4">
  <Header description="For tests"/>
  <DataDictionary>
{dictionary}  </DataDictionary>
{model}</PMML>
"""


def write(name, text, rows):
    (ROOT / f"{name}.pmml").write_text(text)
    lines = [",".join(str(v) for v in row) for row in rows]
    (ROOT / f"{name}.expected").write_text("\n".join(lines) + "\n")


IRIS = (
    "".join(f'    <DataField name="{f}" optype="continuous" dataType="double"/>\n' for f in FIELDS)
    + '    <DataField name="Species" optype="categorical" dataType="string">\n'
    + "".join(f'      <Value value="{s}"/>\n' for s in SPECIES)
    + "    </DataField>\n"
)
SCHEMA = (
    "    <MiningSchema>\n"
    + "".join(f'      <MiningField name="{f}"/>\n' for f in FIELDS)
    + '      <MiningField name="Species" usageType="target"/>\n    </MiningSchema>\n'
)


def outputs(node):
    return (
        '    <Output>\n      <OutputField name="Species" optype="categorical" dataType="string" feature="predictedValue"/>\n'
        + "".join(
            f'      <OutputField name="Probability_{s}" optype="continuous" dataType="double" feature="probability"'
            f' value="{s}"/>\n'
            for s in SPECIES
        )
        + ('      <OutputField name="Node_Id" optype="categorical" dataType="string" feature="entityId"/>\n' if node else "")
        + "    </Output>\n"
    )


# A tree: thresholds of FP32, as scikit-learn compares.
tree = DecisionTreeClassifier(max_depth=2, random_state=0).fit(X, y)
t = tree.tree_


def node(i, predicate, indent):
    pad = " " * indent
    counts = t.value[i][0] * t.weighted_n_node_samples[i]
    text = f'{pad}<Node id="{i + 1}" score="{SPECIES[int(np.argmax(counts))]}" recordCount="{counts.sum():.1f}">\n'
    text += f"{pad}  {predicate}\n"
    for s, n in zip(SPECIES, counts):
        text += f'{pad}  <ScoreDistribution value="{s}" recordCount="{n:.1f}"/>\n'
    if t.children_left[i] >= 0:
        f, at = FIELDS[t.feature[i]], repr(float(t.threshold[i]))
        text += node(
            t.children_left[i], f'<SimplePredicate field="{f}" operator="lessOrEqual" value="{at}"/>', indent + 2
        )
        text += node(
            t.children_right[i], f'<SimplePredicate field="{f}" operator="greaterThan" value="{at}"/>', indent + 2
        )
    return text + f"{pad}</Node>\n"


rows = X[::7]
write(
    "iris-tree",
    document(
        IRIS,
        '  <TreeModel modelName="iris" functionName="classification" splitCharacteristic="binarySplit">\n'
        + SCHEMA
        + outputs(True)
        + node(0, "<True/>", 4)
        + "  </TreeModel>\n",
    ),
    [
        [*x, SPECIES[k], *p, leaf + 1]
        for x, k, p, leaf in zip(rows, tree.predict(rows), tree.predict_proba(rows), tree.apply(rows))
    ],
)

# Logistic regression of three classes.
logistic = LogisticRegression(max_iter=500).fit(X, y)
tables = ""
for s, b, ws in zip(SPECIES, logistic.intercept_, logistic.coef_):
    tables += f'    <RegressionTable targetCategory="{s}" intercept="{b!r}">\n'.replace("np.float64(", "").replace(")", "")
    for f, w in zip(FIELDS, ws):
        tables += f'      <NumericPredictor name="{f}" coefficient="{float(w)!r}"/>\n'
    tables += "    </RegressionTable>\n"
write(
    "iris-logistic",
    document(
        IRIS,
        '  <RegressionModel functionName="classification" normalizationMethod="softmax">\n'
        + SCHEMA
        + outputs(False)
        + tables
        + "  </RegressionModel>\n",
    ),
    [[*x, SPECIES[k], *p] for x, k, p in zip(rows, logistic.predict(rows), logistic.predict_proba(rows))],
)

# Fields of all kinds, and what to do about missing values.
rng = np.random.default_rng(3)
frame = pd.DataFrame(
    {
        "age": rng.integers(18, 80, 200),
        "city": rng.choice(["Bern", "Basel", "Chur"], 200),
        "member": rng.choice([True, False], 200),
        "income": rng.normal(60, 12, 200).round(2),
    }
)
target = frame["age"] * 0.5 + frame["city"].map({"Bern": 3, "Basel": -1, "Chur": 7}) + frame["income"] * 0.1
target += frame["member"] * 2.5 + rng.normal(0, 0.1, 200)
D = pd.DataFrame({"age": frame["age"], "member": frame["member"].astype(int), "income": frame["income"]})
for c in ("Bern", "Basel", "Chur"):
    D[c] = (frame["city"] == c).astype(int)
linear = LinearRegression().fit(D, target)
w = dict(zip(D.columns, linear.coef_.tolist()))
cases = frame[:25].copy().astype(object)
filled = cases.copy()
cases.loc[3, "income"] = ""
filled.loc[3, "income"] = 60.0
cases.loc[5, "city"] = ""
filled.loc[5, "city"] = "Bern"
E_ = pd.DataFrame({"age": filled["age"], "member": filled["member"].astype(int), "income": filled["income"].astype(float)})
for c in ("Bern", "Basel", "Chur"):
    E_[c] = (filled["city"] == c).astype(int)
answers = linear.predict(E_)
write(
    "mixed",
    document(
        """    <DataField name="age" optype="continuous" dataType="integer">
      <Interval closure="closedClosed" leftMargin="0" rightMargin="150"/>
    </DataField>
    <DataField name="city" optype="categorical" dataType="string">
      <Value value="Bern"/>
      <Value value="Basel"/>
      <Value value="Chur"/>
    </DataField>
    <DataField name="member" optype="categorical" dataType="boolean"/>
    <DataField name="income" optype="continuous" dataType="double"/>
    <DataField name="cost" optype="continuous" dataType="double"/>
""",
        f"""  <RegressionModel functionName="regression">
    <MiningSchema>
      <MiningField name="age"/>
      <MiningField name="city" missingValueReplacement="Bern"/>
      <MiningField name="member"/>
      <MiningField name="income" missingValueReplacement="60.0"/>
      <MiningField name="cost" usageType="target"/>
    </MiningSchema>
    <Output>
      <OutputField name="cost" optype="continuous" dataType="double" feature="predictedValue"/>
    </Output>
    <RegressionTable intercept="{float(linear.intercept_)!r}">
      <NumericPredictor name="age" coefficient="{w['age']!r}"/>
      <NumericPredictor name="income" coefficient="{w['income']!r}"/>
      <CategoricalPredictor name="city" value="Bern" coefficient="{w['Bern']!r}"/>
      <CategoricalPredictor name="city" value="Basel" coefficient="{w['Basel']!r}"/>
      <CategoricalPredictor name="city" value="Chur" coefficient="{w['Chur']!r}"/>
      <CategoricalPredictor name="member" value="true" coefficient="{w['member']!r}"/>
    </RegressionTable>
  </RegressionModel>
""",
    ),
    [
        [r.age, r.city, str(r.member).lower(), r.income, a]
        for r, a in zip(cases.itertuples(), answers.tolist())
    ],
)
