"""Writes sacrebleu.json: corpora with the tokens and scores of sacreBLEU 2.6.0 (pip install sacrebleu==2.6.0)."""
import json, pathlib, random
from sacrebleu.metrics import BLEU
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

random.seed(0)
lines = [
    ("The cat sat on the mat.", "The cat sat on the mat."),
    ("It cost $3,000.50, or 5-6% of GDP...", "It costs $3,000.50 or 5-6 % of GDP."),
    ("\"Hello,\" she said; 'no!'", "\"Hello\", she said: 'No!'"),
    ("a &amp; b &lt;c&gt; &quot;d&quot; <skipped>", "a & b <c> \"d\""),
    ("Und das ist gut so, nicht wahr?", "Und so ist es gut, nicht wahr?"),
    ("e-mail well-known 10-fold 3.14 .5 5. ,7 7,", "email well known 10-fold 3.14 0.5 5. 7, 7"),
    ("tabs\tand\u00a0spaces  here ", " tabs and spaces here"),
    ("ünïcödé — “quotes” … 中文。", "ünicode - \"quotes\" ... 中文。"),
    ("short", "a much longer reference than the hypothesis"),
    ("one two three four five six", "seven eight nine ten"),
    ("the the the the the the the", "the cat is on the mat"),
    ("(brackets) [square] {curly} ~tilde~ `tick` a/b a\\b a|b a^b", "(brackets) [square] {curly} a/b a|b"),
    ("U.S. 1.000.000 3,5 v1.2.3-beta http://x.org/a?b=c&d=e", "U.S. 1,000,000 3.5 v1.2.3 beta http://x.org/"),
    ("", "an empty hypothesis"),
]
words = "the a of to and in is it was for on with he she they we you 3.5 1,000 - , . ! ?".split()
def sentence(n): return " ".join(random.choice(words) for _ in range(n))
def noisy(s): return " ".join(w for w in s.split() if random.random() > 0.15)
corpora = [[pair] for pair in lines] + [lines, lines[:5], lines[5:]]
for n in (3, 20, 100):
    references = [sentence(random.randint(1, 30)) for _ in range(n)]
    corpora.append([(noisy(r), r) for r in references])
token, bleu, cases = Tokenizer13a(), BLEU(), []
for pairs in corpora:
    result = bleu.corpus_score([a for a, _ in pairs], [[b for _, b in pairs]])
    cases.append({
        "pairs": pairs, "tokens": [[token(a.rstrip()), token(b.rstrip())] for a, b in pairs],
        "score": result.score, "precisions": result.precisions, "brevity_penalty": result.bp,
        "lengths": [result.sys_len, result.ref_len],
    })
out = pathlib.Path(__file__).with_name("sacrebleu.json")
out.write_text(json.dumps(cases, ensure_ascii=False, indent=0) + "\n")
print(len(cases), [round(c["score"], 2) for c in cases])
