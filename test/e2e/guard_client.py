"""A service in Python whose own Postgres has Writ's guard (writ guard sql). Prints what it saw.

Usage: guard_client.py DATABASE_URL OLD_TOKEN NEW_TOKEN
"""
import json
import sys

import psycopg2

OPEN = "SELECT writ_guard.open(%s, 'exact', %s, %s, %s, NULL)"
ADMIT = "SELECT writ_guard.admit(%s, %s, %s, %s, %s)"  # resource, token, exclusive, run, action


class Refused(Exception):
    """The guard refused the token: answer 409, and do not try again."""


def connect(url):
    connection = psycopg2.connect(url)
    connection.set_session(isolation_level="READ COMMITTED")
    return connection


def guarded(connection, work):
    """One transaction: what `work` does commits, or nothing."""
    try:
        with connection, connection.cursor() as cursor:
            return work(cursor)
    except psycopg2.Error as error:
        if error.pgcode == "WR001":
            raise Refused(error.diag.message_detail) from None
        raise


def open_resource(connection, resource, token, run):
    """A new holder's first act, before it reads."""
    guarded(connection, lambda cursor: cursor.execute(OPEN, (resource, token, run, "promote")))


def promote(connection, env, image, observed, token, run):
    """Guard, then check and change in one statement. Returns the new version, or None: somebody else was first."""

    def work(cursor):
        cursor.execute(ADMIT, (f"release/{env}", token, True, run, "promote"))
        cursor.execute(
            "UPDATE release SET image = %s, version = version + 1 WHERE env = %s AND version = %s RETURNING version",
            (image, env, observed),
        )
        row = cursor.fetchone()
        return row[0] if row else None

    return guarded(connection, work)


def main(url, old, new):
    older, newer = connect(url), connect(url)
    seen = {}
    open_resource(older, "release/prod-eu", old, "run-a")
    seen["first"] = promote(older, "prod-eu", "shop:2", 7, old, "run-a")
    seen["conflict"] = promote(older, "prod-eu", "shop:3", 7, old, "run-a")
    open_resource(newer, "release/prod-eu", new, "run-b")
    try:
        promote(older, "prod-eu", "shop:late", 8, old, "run-a")
        seen["late"] = "written"
    except Refused as refused:
        seen["late"] = str(refused)
    seen["second"] = promote(newer, "prod-eu", "shop:4", 8, new, "run-b")
    print(json.dumps(seen))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
