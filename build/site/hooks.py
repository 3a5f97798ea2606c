# Copyright the Nereid authors.
# SPDX-License-Identifier: Apache-2.0
"""What the site does differently from the files: documents that the menu does not name, links to files of the sources, comments."""

import os
import posixpath
import re

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
# Where the sources can be read; without it, links to them are only their text.
SOURCES = os.environ.get("NEREID_SOURCES", "").rstrip("/")


def on_config(config):
    """Adds the documents of the folders how-to and decisions to the menu."""
    docs = config["docs_dir"]
    for folder, title in (("how-to", "How to"), ("decisions", "Decisions")):
        pages = sorted(name for name in os.listdir(os.path.join(docs, folder)) if name.endswith(".md"))
        pages.sort(key=lambda name: name != "README.md")
        config["nav"].append({title: [f"{folder}/{name}" for name in pages]})
    return config


def on_page_markdown(markdown, page, config, files):
    """Links that leave the documents lead to the sources; the tests' comments are not shown."""
    here = posixpath.dirname(page.file.src_uri)

    def changed(link):
        text, target = link.groups()
        path, _, _ = target.partition("#")
        if not path or "://" in path:
            return link.group(0)
        joined = posixpath.normpath(posixpath.join("docs", here, path))
        inside = joined.startswith("docs/") and files.get_file_from_path(joined[len("docs/") :]) is not None
        if inside:
            return link.group(0)
        if not os.path.exists(os.path.join(config["docs_dir"], "..", joined)):
            # Left as it is, so that the build reports it.
            return link.group(0)
        return f"[{text}]({SOURCES}/{joined})" if SOURCES else text

    blocks = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    blocks[::2] = [LINK.sub(changed, re.sub(r"^<!-- not run: .*? -->\n", "", block, flags=re.M)) for block in blocks[::2]]
    return "".join(blocks)


def on_post_page(output, page, config):
    """Fails for a page that would load something from another server."""
    foreign = re.findall(r'<(?:script|link|img|iframe)[^>]*(?:src|href)="(https?://[^"]+)"', output)
    foreign = [address for address in foreign if not address.startswith(config["site_url"] or "\0")]
    if foreign:
        raise ValueError(f"{page.file.src_uri} loads {', '.join(sorted(set(foreign)))}")
    return output
