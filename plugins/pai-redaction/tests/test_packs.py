"""What the rule packs find, and what they leave alone."""

from __future__ import annotations

from typing import Any

import pytest
from pai_redaction._hider import Hider
from pai_redaction._marks import Marks
from pai_redaction._packs import packs

ALL = Hider([rule for found in packs().values() for rule in found], Marks("mask", None))

KEY = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n" * 3
HEAD = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A\n"
PGP = "PGP PRIVATE KEY BLOCK"

FOUND = {
    "email": [
        "alice@example.com", "a.b+c_d%e@sub.example.co.uk", "müller@exämple.de",
        "x@xn--exmple-cua.xn--p1ai", "A@B.CC",
    ],
    "phone": [
        "+49 30 1234567", "+1 (212) 555-0187", "+442079460958", "0049 30 1234567",
        "(212) 555-0187", "212-555-0187", "030/1234567", "0171 1234567", "06 12 34 56 78",
    ],
    "card": [
        "4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "378282246310005",
        "5555 5555 5555 4444", "6011111111111117", "3530111333300000", "30569309025904",
        "2223003122003222",
    ],
    "iban": ["DE89370400440532013000", "GB82 WEST 1234 5698 7654 32", "no93 8601 1117 947"],
    "ip": ["10.0.0.1", "255.255.255.255", "2001:db8::ff00:42:8329", "fe80::1", "::ffff:10.0.0.1"],
    "mac": ["00:1b:63:84:45:e6", "00-1B-63-84-45-E6"],
    "ssn": ["123-45-6789"],
    "cloud_key": [
        "AKIAIOSFODNN7EXAMPLE",
        "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "AIzaSyA1234567890abcdefghijklmnopqrstuv",
        "GOCSPX-abcdefghijklmnopqrstuvwxyz12",
        "AccountKey=" + "a1B2" * 21 + "cd==",
    ],
    "api_key": [
        "sk-proj-abcdEFGH1234567890_-xyz", "sk-ant-api03-abcdefgh12345678-_", "ghp_" + "a1" * 18,
        "github_pat_11ABCDEFG0abcdefghijkl", "glpat-abcdefghij1234567890", "xoxb-123456789012-abc",
        "sk_live_abcdefghij1234", "SG.abcdefghijklmnop1234.abcdefghijklmnopqrstuvwxyz012345678",
        "npm_" + "a1" * 18, "hf_abcdefghijABCDEFGHIJ1234567890", "AC" + "0a" * 16,
        "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
    ],
    "jwt": ["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"],
    "private_key": [
        f"-----BEGIN PRIVATE KEY-----\n{KEY}-----END PRIVATE KEY-----",
        f"-----BEGIN RSA PRIVATE KEY-----\n{HEAD}\n{KEY}-----END RSA PRIVATE KEY-----",
        rf"-----BEGIN OPENSSH PRIVATE KEY-----\n{KEY}\n-----END OPENSSH PRIVATE KEY-----",
        f"-----BEGIN {PGP}-----\nVersion: GnuPG v2\n\nlQ+=\n=abcd\n-----END {PGP}-----",
        "AGE-SECRET-KEY-1" + "Q" * 58,
    ],
    "credentials": [
        "password=hunter22", '"api_key": "abc123def"', "secret = 's3cr3t-value'",
        "Bearer abcdef1234567890ABCD", "Basic dXNlcjpwYXNzd29yZDE=",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in FOUND.items() for text in texts]
)
@pytest.mark.parametrize("around", ["{}", "It is {}, said Bob.", "({})", "x {}\nand on"])
def test_a_pack_finds(name: Any, text: Any, around: Any) -> None:
    shown = around.format(f"[{name}]")
    whole = around.format(text)
    if name == "private_key" and around.startswith("It"):
        return  # what follows a key that breaks off can't be told from it
    assert ALL.text(whole) == shown
    stream = ALL.pieces()
    assert "".join([*[stream.feed(letter) for letter in whole], stream.flush()]) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Hello, world! How are you today?",
        "a @ b, @alice, alice@localhost, 3 @ 4.50",
        "version 1.2.3, at 12:30:45 on 2026-11-30 (01-12-2026)",
        "std::vector<int>, x[::1], a::b, foo::bar",
        "4111 1111 1111 1112, 1234567890123456, 1700000000000, 17000000000000001",
        "GB83 WEST 1234 5698 7654 32, XX12 3456 7890 1234 5678",
        "256.1.1.1, 1.2.3",
        "666-12-3456, 000-12-3456, 123-00-4567",
        "sk-learn-based-something-very-long, skill, ghp_short",
        "token = get_token(request), password=<your password>, api_key=os.environ(1), secret=$X1Y2Z3",
        "bearer authentication is described elsewhere, basic-research-institute",
        "https://host:8080/path@x?a=b, http://example.com/a:b",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "commit 3f9c2a71b0de4d5e8f90123456789abcdef01234",
        "123e4567-e89b-12d3-a456-426614174000",
        "Zahlen: 3,14159 und 1.000.000 und 50% von 20 000",
        "你好、世界。これはテストです。",
    ],
)
def test_packs_leave_alone(text: Any) -> None:
    assert ALL.text(text) == text


def test_of_a_longer_number_the_part_that_is_right_is_hidden() -> None:
    assert ALL.text("12 4111 1111 1111 1111 34") == "12 [card] 34"
    assert ALL.text("DE89 3704 0044 0532 0130 00 IS MINE") == "[iban] IS MINE"


def test_a_key_that_breaks_off_is_hidden() -> None:
    assert ALL.text(f"-----BEGIN PRIVATE KEY-----\n{KEY}") == "[private_key]"


def test_urls_lose_their_credentials_only() -> None:
    assert ALL.text("postgres://bob:pa55@db:5432/x") == "[credentials]db:5432/x"


def test_words_of_scripts_without_spaces_are_not_held_back() -> None:
    stream = ALL.pieces()
    assert stream.feed("你好、世界") == "你好、世界"
    assert stream.feed(" See https") == " See "
    assert stream.feed(":") == ""
    assert stream.feed(" x ") == "https: x "
