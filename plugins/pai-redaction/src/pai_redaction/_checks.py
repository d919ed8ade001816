"""Checks: whether what a pattern of a rule pack matched is what it looks like, and how much of it."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

__all__ = ("Key", "card", "has_digit", "iban", "ipv6", "phone", "secret", "ssn")


def has_digit(text: str) -> bool:
    """Keys have digits; words with hyphens do not."""
    return any(map(str.isdigit, text))


class Key:
    """
    As much of a text as is a key.

    Args:
        pattern: What a key is, to the last character; it has digits besides.
    """

    __slots__ = ("_pattern",)

    def __init__(self, pattern: str) -> None:
        self._pattern: Final = re.compile(pattern, re.ASCII)

    def __call__(self, text: str) -> int:
        match = self._pattern.match(text)
        return match.end() if match is not None and has_digit(match[0]) else 0


def phone(text: str) -> int:
    """As many groups of digits as make an international number: 8 to 15, without a leading 00."""
    for end in _ends_of_groups(text):
        digits = sum(map(str.isdigit, text[:end])) - (2 if text.startswith("00") else 0)
        if 8 <= digits <= 15:
            return end
    return 0


_CARDS: Final = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[0-8]\d{14}|2[2-7]\d{14}|3[47]\d{13}"
    r"|3(?:0[0-5]|[689]\d)\d{11,16}|35\d{14,17}|6\d{15,18}|5[06-8]\d{10,17}"
)
_LUHN: Final = "0246813579"


def card(text: str) -> int:
    """Digits in groups, as many groups as make a number whose length, prefix and sum are right."""
    for end in _ends_of_groups(text):
        digits = re.sub(r"\D", "", text[:end])
        if _CARDS.fullmatch(digits) and _luhn(digits):
            return end
    return 0


def _ends_of_groups(text: str) -> list[int]:
    """Where digits end, the last first."""
    return [match.end() for match in re.finditer(r"[0-9]+", text)][::-1]


def _luhn(digits: str) -> bool:
    doubled = [int(_LUHN[int(digit)]) for digit in digits[-2::-2]]
    return (sum(doubled) + sum([int(digit) for digit in digits[::-2]])) % 10 == 0


# Characters of an IBAN, by country (ISO 13616 registry).
_IBANS: Final = """
    AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BI:27 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24
    DE:22 DJ:27 DK:18 DO:28 EE:20 EG:29 ES:24 FI:18 FK:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27
    GT:28 HN:28 HR:21 HU:28 IE:22 IL:23 IQ:23 IS:26 IT:27 JO:30 KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20
    LU:20 LV:21 LY:25 MC:27 MD:24 ME:22 MK:19 MN:20 MR:27 MT:31 MU:30 NI:28 NL:18 NO:15 OM:23 PK:24
    PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 RU:33 SA:24 SC:31 SD:18 SE:24 SI:19 SK:24 SM:27 SO:23 ST:25
    SV:28 TL:23 TN:24 TR:26 UA:29 VA:22 VG:24 XK:20 YE:30
"""
_LENGTHS: Final = {item[:2]: int(item[3:]) for item in _IBANS.split()}


def iban(text: str) -> int:
    """As many characters as the country's numbers have, if their checksum is right."""
    length = _LENGTHS.get(text[:2].upper(), 0)
    taken, end = "", 0
    while end < len(text) and len(taken) < length:
        if text[end].isalnum():
            taken += text[end].upper()
        end += 1
    if not length or len(taken) < length or text[end : end + 1].isalnum():
        return 0
    turned = taken[4:] + taken[:4]
    return end if int("".join([str(int(each, 36)) for each in turned])) % 97 == 1 else 0


def ipv6(text: str) -> int:
    """The longest beginning that is an address; one of few digits is more likely code."""
    for end in range(len(text), 2, -1):
        if text[end : end + 1].isalnum() or sum(map(str.isalnum, text[:end])) < 5:
            continue
        try:
            ipaddress.IPv6Address(text[:end])
        except ValueError:
            continue
        return end
    return 0


def secret(text: str) -> bool:
    """What is assigned looks like a value, not like code or a placeholder."""
    value = re.split(r"[=:]", text, maxsplit=1)[1].strip("\"' \t")
    return has_digit(value) and "$" not in value


def ssn(text: str) -> bool:
    """The groups are such as have been given out."""
    area, group, serial = text.split("-")
    return area not in {"000", "666"} and area < "900" and group != "00" and serial != "0000"
