"""Rule packs: what is hidden without a rule of one's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from pai_redaction import _checks
from pai_redaction._rule import Rule

__all__ = ("packs",)

# Letters of Latin, Greek and Cyrillic; scripts that are written without spaces would be held back
# for the length of an address.
_LETTER: Final = r"0-9A-Za-z\u00c0-\u024f\u0370-\u052f"
_OCTET: Final = r"(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_HEX: Final = r"[0-9A-Fa-f]"
_WORD: Final = r"[0-9A-Za-z_-]"
_SPACE: Final = r"[ \u00a0\u202f]"


def _email() -> tuple[Rule, ...]:
    local = rf"[{_LETTER}_%+-][{_LETTER}._%+-]*"
    domain = (
        rf"[{_LETTER}][{_LETTER}.-]*\.(?:[A-Za-z\u00c0-\u024f\u0370-\u052f]{{2,}}|xn--[0-9a-z-]+)"
    )
    return (Rule("email", rf"{local}@{domain}", 254),)


def _phone() -> tuple[Rule, ...]:
    return (
        Rule(
            "phone",
            r"(?:\+|\b00)[1-9](?:[ \u00a0\u202f.()/-]{0,2}[0-9])+\b",
            48,
            check=_checks.phone,
        ),
        # North America, and numbers with a trunk 0.
        Rule(
            "phone", r"(?:\([2-9][0-9]{2}\) ?|\b[2-9][0-9]{2}[ .-])[2-9][0-9]{2}[ .-][0-9]{4}\b", 15
        ),
        Rule("phone", r"\b0[1-9][0-9]{1,4}[ /-]{1,3}[0-9](?:[ -]?[0-9]){4,9}\b", 32),
        Rule("phone", r"\b0[1-9](?:[ .-][0-9]{2}){4}\b", 14),
    )


def _card() -> tuple[Rule, ...]:
    digits = rf"\b[2-6][0-9](?:(?:{_SPACE}|-)?[0-9])+\b"
    return (Rule("card", digits, 40, check=_checks.card),)


def _iban() -> tuple[Rule, ...]:
    return (
        Rule(
            "iban",
            rf"(?i)\b[A-Z]{{2}}[0-9]{{2}}(?:(?:{_SPACE}|-)?[0-9A-Z])+\b",
            64,
            check=_checks.iban,
        ),
    )


def _ip() -> tuple[Rule, ...]:
    return (
        Rule("ip", rf"\b{_OCTET}(?:\.{_OCTET}){{3}}\b", 15),
        Rule(
            "ip",
            rf"(?:\b{_HEX}{{1,4}}|\B:)(?::{_HEX}{{0,4}}){{2,7}}(?:\.[0-9]{{1,3}}){{0,3}}",
            52,
            check=_checks.ipv6,
        ),
        Rule("mac", rf"\b{_HEX}{{2}}(?:[:-]{_HEX}{{2}}){{5}}\b", 17),
    )


def _ssn() -> tuple[Rule, ...]:
    return (Rule("ssn", r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b", 11, check=_checks.ssn),)


def _keys(name: str, pattern: str) -> Rule:
    """
    A rule for keys whose characters are counted.

    The counting is left to the check: an automaton that counts has a state for each character of
    each kind of key, and those take time to make.
    """
    return Rule(name, re.sub(r"\{\d\d+,?\}", "+", pattern), 512, check=_checks.Key(pattern))


def _cloud_key() -> tuple[Rule, ...]:
    kinds = (
        r"\b(?:A3T[0-9A-Z]|ABIA|ACCA|AGPA|AIDA|AIPA|AKIA|ANPA|ANVA|APKA|AROA|ASIA)[0-9A-Z]{16}\b",
        r"(?i:aws_?(?:secret_?)?(?:access_?)?key)[\"']?\s{0,3}[=:]\s{0,3}[\"']?[0-9A-Za-z/+]{40}\b",
        rf"\bAIza{_WORD}{{35}}",
        rf"\bGOCSPX-{_WORD}{{28}}",
        rf"\bya29\.{_WORD}{{20,}}",
        r"(?:Account|SharedAccess)Key=[0-9A-Za-z+/]{40,}={0,2}",
        r"\bdo[opr]_v1_[0-9a-f]{64}\b",
        r"\bLTAI[0-9A-Za-z]{12,}\b",
    )
    return (_keys("cloud_key", "|".join(kinds)),)


def _api_key() -> tuple[Rule, ...]:
    kinds = (
        rf"\b(?:sk|gsk|xai|pplx)[_-]{_WORD}{{20,}}",  # OpenAI, Anthropic, OpenRouter, Groq, ...
        r"\bgh[oprsu]_[0-9A-Za-z]{30,}|\bgithub_pat_[0-9A-Za-z_]{22,}",
        rf"\bgl(?:pat|ptt|cbt|dt|ft|rt|soat|agent)-{_WORD}{{20,}}",
        r"\bxox[abeoprs]-[0-9A-Za-z-]{10,}|\bxapp-[0-9A-Za-z-]{10,}",
        r"\bhooks\.slack\.com/(?:services|workflows)/[0-9A-Za-z/_-]{20,}",
        r"\b(?:sk|rk|pk)_(?:live|test)_[0-9A-Za-z]{10,}|\bwhsec_[0-9A-Za-z+/=]{24,}",
        rf"\bSG\.{_WORD}{{16,}}\.{_WORD}{{32,}}",
        r"\b(?:AC|SK)[0-9a-f]{32}\b",
        r"\bnpm_[0-9A-Za-z]{36}",
        rf"\bpypi-{_WORD}{{50,}}",
        r"\bhf_[0-9A-Za-z]{30,}|\br8_[0-9A-Za-z]{37}|\bdapi[0-9a-f]{32}",
        rf"\b[0-9]{{8,10}}:{_WORD}{{35}}",
        r"\bshp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}|\bkey-[0-9a-f]{32}\b|\b[0-9a-f]{32}-us[0-9]{1,2}\b",
        rf"\blin_api_[0-9A-Za-z]{{32,}}|\bPMAK-[0-9a-f-]{{32,}}|\bhv[bs]\.{_WORD}{{24,}}",
    )
    return (_keys("api_key", "|".join(kinds)),)


def _jwt() -> tuple[Rule, ...]:
    part = r"[0-9A-Za-z_-]"
    signed = rf"{part}+\.{part}+"
    sealed = rf"{part}*\.{part}+\.{part}+\.{part}+"
    return (Rule("jwt", rf"\beyJ{part}{{8,}}\.(?:{signed}|{sealed})", 8192),)


def _private_key() -> tuple[Rule, ...]:
    kind = r"(?:[0-9A-Z]+ )*PRIVATE KEY(?: BLOCK)?-----"
    line = r"(?:\s|\\[nr])*[A-Z][A-Za-z]+(?:-[A-Za-z]+)*: [^\n\\]+(?:\n|\\n)"
    # Also a key that breaks off; a backslash, since line ends come as \n in strings of JSON.
    body = r"[0-9A-Za-z+/=\s\\]*"
    return (
        Rule("private_key", rf"-----BEGIN {kind}(?:{line})*{body}(?:-----END {kind})?", 16384),
        Rule("private_key", r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}", 74),
    )


def _credentials() -> tuple[Rule, ...]:
    names = (
        r"(?:pass(?:word|wd|phrase)|pwd|secret|token|(?:api|access|auth|private|account)[_-]?key)"
    )
    return (
        Rule("credentials", r"\b[A-Za-z][0-9A-Za-z+.-]*://[^\s:/?#@]*:[^\s/?#@]+@", 512),
        Rule(
            "credentials",
            r"(?i)\b(?:Bearer|Basic)\s{1,3}[0-9A-Za-z._~+/=-]{16,}",
            4096,
            check=_checks.has_digit,
        ),
        Rule(
            "credentials",
            rf"(?i)[\"']?{names}(?:=[^\s\"'&;,(){{}}\[\]<>]{{6,}}|[\"']?\s{{0,3}}[=:]\s{{0,3}}[\"'][^\s\"']{{6,}}[\"'])",
            512,
            check=_checks.secret,
        ),
    )


_PACKS: Final = {
    "email": _email,
    "phone": _phone,
    "card": _card,
    "iban": _iban,
    "ip": _ip,
    "ssn": _ssn,
    "cloud_key": _cloud_key,
    "api_key": _api_key,
    "jwt": _jwt,
    "private_key": _private_key,
    "credentials": _credentials,
}
_MADE: dict[str, tuple[Rule, ...]] = {}


def packs() -> Mapping[str, tuple[Rule, ...]]:
    """Every pack: its rules by its name. They are read when they are first asked for."""
    if not _MADE:
        _MADE.update({name: make() for name, make in _PACKS.items()})
    return MappingProxyType(_MADE)
