"""What every room stands on and no room should write again.

`errors` say place and next step; `strict` reads JSON, `canonical` writes it, `schemas` checks it; `opening` opens paths
that somebody gave, `writing` puts files in place whole; `digests`, `names` and `resources` are what they say.
"""
