"""What each number of :func:`~socialgraph.inspect.describe.describe` means, in a sentence, with its unit."""

from __future__ import annotations

import re

#: name, without the number of a block -> meaning
MEANINGS = {
    "nodes": "word pieces of the document that are read",
    "edges": "friendships: pairs of word pieces that know each other",
    "density": "friendships by pairs of word pieces, from 0 to 1",
    "degree_mean": "friends of a word piece, on average",
    "degree_sd": "friends of a word piece: standard deviation",
    "degree_max": "friends of the word piece that has most of them",
    "clustering": "share of the pairs of a word piece's friends that are friends, on average, from 0 to 1",
    "path_length": "hops on the shortest path from one word piece to another, on average",
    "unreachable": "share of pairs that no path joins, from 0 to 1",
    "random_path_length": "path length of a random network of the same density, in hops",
    "small_world": "clustering by that of a random network, over path length by its path length; small worlds exceed 1",
    "circles": "friend circles, passages not counted",
    "circle_size_mean": "word pieces of a friend circle, on average",
    "nodes_kept": "share of the word pieces that are in a friend circle, from 0 to 1",
    "edges_kept": "share of the friendships with both ends in one friend circle, from 0 to 1",
    "overlap": "friend circles of a word piece that is in any, on average",
    "reach_mean": "part of the document that ends with a circle's last member, on average, from 0 to 1",
    "reach_max": "part of the document that ends with the last member of all circles, from 0 to 1",
    "leaders_spread": "standard deviation of the leaders' places, in parts of the document; 0.29 if they stand evenly",
    "query_matches": "word pieces of the document that are word pieces of the query, stop words too",
    "query_kept": "share of the query's word pieces in the document that are in a friend circle, from 0 to 1",
    "query_by_circle": "share of the query's word pieces in the document that one friend circle holds, on average",
    "hops_to_query": "hops from a word piece to the nearest one of the query, on average",
    "met_query": "share of word pieces that have heard of a word piece of the query after so many blocks, from 0 to 1",
    "heard_query": "share of the query's word pieces that a word piece has heard of after so many blocks, on average",
    "readout": "share of word pieces that reach the score: those in any circle or passage, from 0 to 1",
    "friends_met": "share of its expected friends that a word piece meets in a friend circle, on average, from 0 to 1",
}


def meaning(name: str) -> str:
    """Return what a number of that name means; nothing where it is none of :func:`describe`'s."""
    return MEANINGS.get(re.sub(r"_\d+$", "", str(name)), "")
