"""Reuters-21578 as the benchmark's peers read it."""
import os
import re


def documents(folder):
    """(month, body) of each document that has a body and a readable date, as metatopics counts them."""
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".sgm"):
            continue
        with open(os.path.join(folder, name), encoding="latin-1") as file:
            whole = file.read()
        for document in re.findall(r"<REUTERS.*?</REUTERS>", whole, re.S):
            body = re.search(r"<BODY>(.*?)</BODY>", document, re.S)
            date = re.search(r"<DATE>\s*\d+-(\w+)-(\d+)", document)
            if body and date:
                yield (date[2] + "-" + date[1],
                       body[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
