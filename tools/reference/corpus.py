#!/usr/bin/env python3
"""Makes tests/data/corpus.json with scikit-learn 1.9.1: what CountVectorizer takes for
tokens, for a vocabulary and for counts.

    python3 -m pip install scikit-learn==1.9.1
    python3 tools/reference/corpus.py tests/data/corpus.json [folder with reut2-*.sgm]

Of Reuters-21578 only the sizes and a hash of the terms are kept. A collection is taken
only if no tie decides which terms max_features keeps: scikit-learn leaves that open."""
import glob
import json
import random
import re
import sys

import numpy as np
import sklearn
from sklearn.feature_extraction.text import CountVectorizer

TEXTS = [
    "",
    " \t\r\n",
    "a b c I",
    "The quick brown fox; it's 42 o'clock, 3.14 a_b _ __ _x x_",
    "na\u00efve caf\u00e9 na\u0131ve \u00c0 \u00c9T\u00c9 Stra\u00dfe STRASSE \u1e9e\u1e9e",
    "cafe\u0301 e\u0301e\u0301 a\u0308b",
    "\u0130stanbul \u0130\u0130 I\u0130 D\u0130YARBAKIR \u0131\u0131",
    "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3 \u03a3\u03a3 \u03a3 \u03a3A A\u03a3 A\u03a3. A\u03a3.B "
    "A\u03a3\u0301 A\u03a3\u0301B 1\u03a3\u03a3 a'\u03a3b '\u03a3\u03a3' \u03a3'a \u2160\u03a3\u03a3 a\u00ad\u03a3 \u24b6\u03a3\u03a3",
    "\u6771\u4eac\u90fd \u4e2d \u4e2d\u6587\u5206\u8bcd\u3002\u6f22\u5b57 \u3072\u3089\u304c\u306a \u30ab\u30bf\u30ab\u30ca\u30fc",
    "\ud55c\uad6d\uc5b4 \uc870\uc120\ub9d0",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f \u0661\u0662\u0663 \u06f1\u06f2",
    "\u05e9\u05c1\u05b8\u05dc\u05d5\u05b9\u05dd \u05e9\u05dc\u05d5\u05dd",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0967\u0968 \u0e44\u0e17\u0e22",
    "x\u00b2 m\u00b3 \u00bd\u00bd \u00bdx \u2460\u2461 \u2167\u2168 \u0bf0\u0bf1 \u3007\u4e00",
    "\U0001f600\U0001f600 a\U0001f600b \U0001d400\U0001d401 \U00010400\U00010401 \U0001f1e9\U0001f1ea",
    "\u00aa\u00ba \u02b0\u02b1 \u01c5x \u01c4\u01c6 \ufb01\ufb02 \u017f\u017f \u212a\u212b \u2126\u2126",
    "a\u00a0b cc\u00a0dd ee\u200bff gg\u200dhh ii\u00adjj kk\u2019ll mm\u2014nn oo\u3000pp",
    "\u0410\u0411\u0412 \u041c\u043e\u0441\u043a\u0432\u0430 \u0401\u0436 \u10d0\u10d1 \u10a0\u10a1 \u1c90\u1c91 \u13a0\u13a1 \uab70\uab71",
    "\ufffd\ufffd \ufeffab \ufeff a\u0000b cc\u0000dd \u0000",
    "\u023a\u023a\u023e \u1e9eA \u2c6f\u2c6d \ua64a\ua64b",
    "x" * 10000 + " " + "\u00e9" * 3000,
]


def tokens():
    out = []
    for text in TEXTS:
        row = {"text": text}
        for name, lowercase in (("lower", True), ("same", False)):
            analyze = CountVectorizer(lowercase=lowercase).build_analyzer()
            row[name] = analyze(text)
        out.append(row)
    return out


WORDS = ("market bank oil crude trade dollar tonnes wheat \u0394\u0395\u039b\u03a4\u0391\u03a3 stra\u00dfe caf\u00e9 \u6771\u4eac "
         "na\u00efve the of and to in it said Reuter The OF \u041c\u043e\u0441\u043a\u0432\u0430 x2 a_b 1987 mln dlrs").split()


def documents(seed, n):
    draw = random.Random(seed)
    rare = [f"rare{i}" for i in range(150)]
    texts = []
    for _ in range(n):
        k = draw.randrange(0, 40)
        words = draw.choices(WORDS, [1 / (1 + i % 11) for i in range(len(WORDS))], k=k)
        words += draw.choices(rare, k=draw.randrange(0, 12))
        draw.shuffle(words)
        texts.append("- " + draw.choice([" ", "\n", ", "]).join(words))
    return texts


OPTIONS = [
    dict(min_df=1, max_df=1.0),
    dict(min_df=5, max_df=0.5),
    dict(min_df=0.03, max_df=30),
    dict(min_df=2, max_df=0.9, max_features=25),
    dict(min_df=2, max_df=1.0, stop_words="english"),
    dict(min_df=1, max_df=0.4, lowercase=False, max_features=60),
]


def tie(texts, options):
    limit = options.get("max_features")
    if limit is None:
        return False
    every = CountVectorizer(**{**options, "max_features": None})
    counts = np.sort(np.asarray(every.fit_transform(texts).sum(axis=0)).ravel())[::-1]
    return len(counts) > limit and counts[limit - 1] == counts[limit]


def collections():
    out = []
    for number, options in enumerate(OPTIONS):
        seed = 100 * number
        while tie(documents(seed, 97), options):
            seed += 1
        texts = documents(seed, 97)
        vectorizer = CountVectorizer(**options)
        counts = vectorizer.fit_transform(texts)
        counts.sort_indices()
        out.append({"options": {k: v for k, v in options.items()}, "texts": texts,
                    "terms": list(vectorizer.get_feature_names_out()),
                    "indptr": counts.indptr.tolist(), "indices": counts.indices.tolist(),
                    "data": counts.data.tolist()})
    return out


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def reuters(folder):
    texts, months = [], []
    for path in sorted(glob.glob(folder + "/*.sgm")):
        with open(path, encoding="iso-8859-1") as file:
            for document in re.findall(r"<REUTERS.*?</REUTERS>", file.read(), re.S):
                body = re.search(r"<BODY>(.*?)</BODY>", document, re.S)
                if body:
                    text = body.group(1).replace("&lt;", "<").replace("&gt;", ">")
                    texts.append(text.replace("&amp;", "&"))
                    months.append(re.search(r"<DATE>\s*\d+-(\w+)-", document).group(1))
    vectorizer = CountVectorizer(min_df=5, max_df=0.5, max_features=20000)
    counts = vectorizer.fit_transform(texts)
    terms = vectorizer.get_feature_names_out()
    months = np.array(months)
    return {"documents": len(texts), "terms": len(terms), "stored": int(counts.nnz),
            "sum": int(counts.sum()), "terms_fnv1a": fnv("\n".join(terms)),
            "stored_by_month": [int(counts[months == m].nnz)
                                for m in ("FEB", "MAR", "APR", "JUN", "OCT")]}


assert sklearn.__version__ == "1.9.1", sklearn.__version__
result = {"made_by": "tools/reference/corpus.py, scikit-learn " + sklearn.__version__,
          "tokens": tokens(), "collections": collections()}
if len(sys.argv) > 2:
    result["reuters"] = reuters(sys.argv[2])
with open(sys.argv[1], "w", encoding="ascii") as file:
    json.dump(result, file, separators=(",", ":"))
    file.write("\n")
