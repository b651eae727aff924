"""Three conversations written for these tests, each with the facts that a reader would need.

A fact is a few texts that must all stand in the summary. Where a value was corrected, the fact is
the latest one and `STALE` names what it replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

from enfold.messages import Message, Text
from enfold.testing import assistant, call, result, user


@dataclass(frozen=True)
class FactSet:
    """A conversation and what has to be known of it."""

    name: str
    messages: tuple[Message, ...]
    facts: tuple[tuple[str, ...], ...]

    def kept(self, summary: str) -> list[tuple[str, ...]]:
        """The facts that the summary holds, blanks and case aside."""
        text = " ".join(summary.split()).lower()
        return [fact for fact in self.facts if all(part.lower() in text for part in fact)]


def _statement(name: str, text: str) -> Message:
    return Message("user", (Text(text),), name=name)


_LISTING = """total 96
drwxr-xr-x 2 dev dev  4096 Mar  3 09:12 adapters
-rw-r--r-- 1 dev dev  2210 Mar  3 09:12 __init__.py
-rw-r--r-- 1 dev dev  9120 Mar  3 09:12 client.py
-rw-r--r-- 1 dev dev  3377 Mar  3 09:12 errors.py
-rw-r--r-- 1 dev dev  7015 Mar  3 09:12 ledger.py
-rw-r--r-- 1 dev dev  1209 Mar  3 09:12 money.py
-rw-r--r-- 1 dev dev  4420 Mar  3 09:12 retry.py
-rw-r--r-- 1 dev dev  6631 Mar  3 09:12 webhooks.py"""

_RETRY_SOURCE = "\n".join(
    f"{number:6d}\t{line}"
    for number, line in enumerate(
        """import random
import time

from payments.errors import GatewayTimeout

MAX_ATTEMPTS = 3


def with_retry(call, *args):
    delay = 0.5
    for attempt in range(MAX_ATTEMPTS):
        try:
            return call(*args)
        except GatewayTimeout:
            time.sleep(delay + random.random())
            delay *= 2
    raise GatewayTimeout("gave up")


def with_deadline(call, seconds, *args):
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        try:
            return call(*args)
        except GatewayTimeout:
            continue
    raise GatewayTimeout("deadline")""".splitlines(),
        start=1,
    )
)

_LEDGER_SOURCE = "\n".join(
    f"{number:6d}\t{line}"
    for number, line in enumerate(
        """class Ledger:
    def __init__(self, gateway=None):
        self.gateway = gateway
        self.entries = []

    def book(self, kind, ref, amount):
        self.entries.append((kind, ref, amount))

    def charge(self, ref, amount):
        self.book("charge", ref, amount)

    def refund(self, ref, amount):
        if self.gateway is not None:
            reply = with_retry(self.gateway.refund, ref, amount)
            if not reply.accepted:
                raise RefundRejected(reply.reason)
        self.book("refund", ref, -amount)

    def balance(self):
        return sum(amount for _, _, amount in self.entries)

    def statement(self, ref):
        lines = [entry for entry in self.entries if entry[1] == ref]
        return sorted(lines, key=lambda entry: entry[2])""".splitlines(),
        start=100,
    )
)

_TEST_RUN = """============================= test session starts ==============================
platform linux -- Python 3.12.4, pytest-8.2.0
rootdir: /srv/payments
collected 148 items

tests/test_client.py ......................................             [ 25%]
tests/test_ledger.py ....................................F...           [ 52%]
tests/test_retry.py ..............................                      [ 72%]
tests/test_webhooks.py .........................................        [100%]

=================================== FAILURES ===================================
________________________ test_refund_is_booked_once ____________________________
    def test_refund_is_booked_once():
        book = Ledger()
        book.refund("r-77", 1250)
        book.refund("r-77", 1250)
>       assert book.balance() == -1250
E       AssertionError: assert -2500 == -1250

tests/test_ledger.py:88: AssertionError
=========================== short test summary info ============================
FAILED tests/test_ledger.py::test_refund_is_booked_once - AssertionError: assert -2500 == -1250
======================== 1 failed, 147 passed in 12.31s ========================"""

CODING = FactSet(
    "coding",
    (
        user(
            "Hi! Our payment service double-books refunds when the gateway times out. Please find "
            "the cause and fix it. The code is in /srv/payments, the ticket is PAY-2317. You must "
            "not touch the public API in payments/client.py, and everything has to keep working on "
            "Python 3.11."
        ),
        assistant(
            "Thanks, I'll start by looking at the package to see how it is put together.",
            call("c1", "bash", {"command": "ls -l /srv/payments/payments"}),
        ),
        result("c1", _LISTING),
        assistant(
            "Let me read the retry module.",
            call("c2", "read_file", {"path": "/srv/payments/payments/retry.py"}),
        ),
        result("c2", _RETRY_SOURCE),
        assistant(
            "The retry helper looks simple enough. Let me see who calls it, and how.",
            call("c2b", "grep", {"pattern": "with_retry", "path": "/srv/payments"}),
        ),
        result(
            "c2b",
            "payments/client.py:41:        return with_retry(self._post, path, body)\n"
            "payments/client.py:58:        return with_retry(self._get, path)\n"
            "payments/ledger.py:112:        reply = with_retry(self.gateway.refund, ref, amount)\n"
            "payments/webhooks.py:77:    with_retry(deliver, event)\n"
            "tests/test_retry.py:9:    assert with_retry(lambda: 1) == 1\n"
            "tests/test_retry.py:17:        with_retry(always_failing)",
        ),
        assistant(
            "And now the ledger itself, around the place that books a refund.",
            call("c2c", "read_file", {"path": "/srv/payments/payments/ledger.py"}),
        ),
        result("c2c", _LEDGER_SOURCE),
        assistant(
            "The cause is clear now: `with_retry` repeats the call after a GatewayTimeout although "
            "the first request may have reached the bank. The refund is then booked twice because "
            "`Ledger.refund` has no idempotency key. Let me confirm it with a test.",
            call("c3", "bash", {"command": "pytest -q tests/test_ledger.py"}),
        ),
        result("c3", _TEST_RUN, is_error=True),
        user(
            "Good find. How should we fix it? I had thought of a lock in Redis, we have one "
            "running "
            "on cache.internal:6379."
        ),
        assistant(
            "A lock in Redis would stop two workers, but not a retry by the same worker. There are "
            "two better options. First, an idempotency key per refund, stored in a unique column "
            "`refund_key` of the table `ledger_entries`. Second, asking the gateway for the state "
            "of the refund before each retry, which costs about 180 ms per call. I would take the "
            "first one, since it also protects against replays of webhooks."
        ),
        user(
            "Agreed, let's go with the idempotency key. Use uuid5 over the order id and the "
            "amount, "
            "and keep entries for 90 days."
        ),
        assistant(
            "I'll write the migration first.",
            call(
                "c4",
                "write_file",
                {
                    "path": "/srv/payments/migrations/0042_refund_key.sql",
                    "content": "ALTER TABLE ledger_entries ADD COLUMN refund_key uuid UNIQUE;",
                },
            ),
        ),
        result("c4", "File written: /srv/payments/migrations/0042_refund_key.sql"),
        assistant(
            "Now the migration has to be tried on the staging database.",
            call("c5", "bash", {"command": "make migrate ENV=staging"}),
        ),
        result(
            "c5",
            "Applying 0041_add_currency.sql ... ok\nApplying 0042_refund_key.sql ...\n"
            "psycopg.errors.UniqueViolation: could not create unique index "
            '"ledger_entries_refund_key_key"\nDETAIL: Key (refund_key)=(9b2f) is duplicated.\n'
            "make: *** [Makefile:31: migrate] Error 1",
            is_error=True,
        ),
        assistant(
            "The migration failed on staging: there are already duplicated refunds, so the unique "
            "index cannot be created. We have to clean those up first. I found 37 duplicated rows, "
            "all written between 12 and 19 February."
        ),
        user(
            "Wow. Don't delete them, finance needs them for the audit. Move them to a table called "
            "ledger_quarantine instead. And actually, make the retention 365 days instead of 90, "
            "the auditors asked for it."
        ),
        assistant(
            "Understood: duplicates go to ledger_quarantine, retention is 365 days.",
            call(
                "c6",
                "edit_file",
                {
                    "path": "/srv/payments/payments/ledger.py",
                    "old": "def refund(self, ref, amount):",
                    "new": "def refund(self, ref, amount, *, key):",
                },
            ),
            call("c7", "bash", {"command": "make migrate ENV=staging && pytest -q"}),
        ),
        result("c6", "1 replacement made"),
        result(
            "c7",
            "Applying 0042_refund_key.sql ... ok\n37 rows moved to ledger_quarantine\n148 passed "
            "in 11.87s",
        ),
        assistant(
            "The migration works on staging now, and all 148 tests pass. The fix is on the branch "
            "fix/refund-idempotency, commit 4be91d7. I also raised MAX_ATTEMPTS from 3 to 5, "
            "because retries are safe now."
        ),
        user(
            "Great work, thank you so much! Please put MAX_ATTEMPTS back to 3, Dana from "
            "operations "
            "wants fewer calls to the bank. Who has to approve the change, by the way?"
        ),
        assistant(
            "MAX_ATTEMPTS is 3 again, commit c07aa12. I don't know who approves changes to the "
            "ledger; CODEOWNERS only names @payments-core. The next step is to run the migration "
            "on production in the maintenance window on Sunday at 02:00 UTC."
        ),
    ),
    (
        ("PAY-2317",),
        ("/srv/payments",),
        ("payments/client.py",),
        ("Python 3.11",),
        ("with_retry",),
        ("GatewayTimeout",),
        ("idempotency key",),
        ("ledger_entries",),
        ("refund_key",),
        ("180 ms",),
        ("uuid5",),
        ("0042_refund_key.sql",),
        ("UniqueViolation",),
        ("staging",),
        ("37",),
        ("February",),
        ("audit",),
        ("ledger_quarantine",),
        ("365 days",),
        ("148",),
        ("fix/refund-idempotency",),
        ("c07aa12",),
        ("MAX_ATTEMPTS", "3"),
        ("Dana",),
        ("@payments-core",),
        ("02:00 UTC",),
    ),
)

PLANNING = FactSet(
    "planning",
    (
        user(
            "Hello! I am planning my parents' golden wedding and could use some help. There will "
            "be "
            "about 60 guests, and my budget is 9,000 euros in total."
        ),
        assistant(
            "What a lovely occasion, congratulations to your parents! I'd be happy to help. To get "
            "started it would be good to know the date, the town, and whether there is anything "
            "that your parents would especially enjoy. Golden weddings are often celebrated with "
            "a lunch, since it is easier for older guests to travel during the day. Some families "
            "prefer an evening with dancing, others like a quiet meal with speeches and old "
            "photographs. There is no right or wrong here, and we can go through everything step "
            "by "
            "step, from the place to the small details, so that you can enjoy the day yourself."
        ),
        user(
            "The date is Saturday 14 June, in Lucca. My mother Teresa uses a wheelchair, so there "
            "must not be any stairs. My father Aldo is allergic to shellfish."
        ),
        assistant(
            "Thank you, that is very helpful. For a day in June in Tuscany I would look for a "
            "place "
            "with shade. There are three that are on one level. Villa Bottini has a garden in the "
            "old town and costs 2,400 euros for the day. The restaurant Antico Frantoio in "
            "Capannori takes 45 euros per person with wine. The third one is the Tenuta San "
            "Pietro, "
            "which is beautiful but has gravel paths. Each of them has its own charm, and you "
            "can't really go wrong; it depends on how formal the day should be. When you visit a "
            "place, it is a good idea to look at the light in the afternoon, to try the chairs, "
            "and "
            "to ask who will be there on the day itself. People often forget to ask about the "
            "weather: even in early summer a shower can pass, so a roof nearby is worth a lot."
        ),
        user("Gravel is no good for the wheelchair. Does the frantoio have parking?"),
        assistant(
            "Yes, Antico Frantoio has 40 parking spaces, and a ramp at the side entrance. You "
            "would "
            "have to reserve by 31 March with a deposit of 500 euros. Places of this kind fill up "
            "quickly at that time of the year, so it would be wise not to wait for too long. If "
            "you "
            "like, I can write a friendly message to them for you, with the questions that are "
            "usually asked in such a case. It is often worth asking for a quiet corner as well, "
            "for "
            "those who would like to rest for a moment, and for somebody who speaks slowly and "
            "clearly at the table with the older guests. Little things of that kind are what "
            "people "
            "remember in the end, more than the menu or the decoration."
        ),
        user(
            "Perfect, we have decided on Antico Frantoio then. My sister Giulia will pay the "
            "deposit. Next is music: my parents met at a dance where a band played Mina songs."
        ),
        assistant(
            "How romantic! A small band that plays songs of the sixties would be wonderful. The "
            "Quartetto Belvedere plays that repertoire and asks 850 euros for three hours. A "
            "cheaper "
            "choice would be a DJ for around 300 euros, although live music tends to bring people "
            "to the floor much more easily, especially those who remember the songs. It also "
            "helps to "
            "think about where the musicians will stand, whether they bring their own equipment, "
            "and "
            "how loud it may be, since older people like to be able to talk at the table. A short "
            "list of favourite songs is always welcome, and it makes the evening more personal."
        ),
        user("We'll take the Quartetto Belvedere. Please note that they need to start at 15:30."),
        assistant(
            "Noted. Now to the invitations: with 60 guests, printed cards cost about 120 euros at "
            "Tipografia Baroni, and they need ten days. Many families send them eight weeks "
            "ahead. As for "
            "the wording, something warm and simple works best: who invites, what is celebrated, "
            "and "
            "where and when to come. It is also nice to say something about presents, because "
            "people "
            "will ask anyway, and it saves you a number of telephone calls. A drawing by a "
            "grandchild "
            "on the front would make them special without costing anything. If there is time, send "
            "them in real envelopes with a nice stamp; it feels different from a message on the "
            "phone, and for many older people it is the only kind of invitation that counts."
        ),
        user(
            "Let's print them. Text in Italian and English, because uncle Frank comes from Toronto "
            "with his family. Oh, and actually we will be 72, not 60: I forgot the cousins from "
            "Pisa."
        ),
        assistant(
            "No problem at all! With 72 guests at 45 euros per person the lunch comes to 3,240 "
            "euros. Together with the band and the cards that is well within your budget. It would "
            "still be sensible to keep a little aside for surprises, as there is always something "
            "that nobody thought of: flowers, a taxi for somebody, or a few more bottles. You will "
            "be glad to have that freedom when the day comes closer. It also takes some pressure "
            "off "
            "you, because you can say yes to a good idea without having to go through all the sums "
            "once more, and that is worth something when there is so much else to think about."
        ),
        user(
            "Good. For the cake I called Pasticceria Taddeucci: a buccellato cake for everyone is "
            "4.80 euros a slice. They can't do it without walnuts though, and my niece Sofia must "
            "not eat nuts."
        ),
        assistant(
            "Then it would be safer to have a second, small cake without nuts from another baker, "
            "so that nothing gets mixed up. Allergies are taken more seriously today than they "
            "used "
            "to be, and most bakers will gladly explain what they use. It is also a good idea to "
            "put "
            "a small card next to each cake. Shall I look for one that delivers to Capannori?"
        ),
        user(
            "Yes please. One change: the restaurant called, the 14th is taken. We moved the party "
            "to Sunday 15 June. The band is free that day as well, I checked."
        ),
        assistant(
            "These things happen, and it is good news that nobody else has to be asked again. In "
            "my "
            "experience a Sunday is even nicer, because people are rested and nobody has to hurry "
            "home for an appointment. Those who come from far away can arrive in the evening "
            "before "
            "and take their time, and on the day after there is always somebody who stays to help "
            "with the tidying up. If any of the guests cannot make it, they will surely "
            "understand. "
            "Good that you checked with the band. I'll use Sunday 15 June from now on. The cards "
            "have not been ordered yet, so nothing is lost. For the cake without nuts, Forno "
            "Amedeo "
            "delivers and asks 55 euros."
        ),
        user(
            "Order from Forno Amedeo then. What about photographs? I haven't decided whether we "
            "want "
            "a photographer. My cousin Luca has a good camera, but he should enjoy the day."
        ),
        assistant(
            "That is a fair point. Photographers in the area start at 600 euros for an afternoon. "
            "It can wait for a while, though in June many are booked early. Some hosts put a few "
            "simple cameras on the tables and let the guests take pictures themselves, which can "
            "be "
            "great fun and gives you a different view of the day. Others ask a young person in the "
            "family to walk around for an hour. Whatever you do, a picture of the whole family is "
            "something that everybody will be happy to have later on."
        ),
        user("It's still open then. Next step for me: call the frantoio on Monday about the menu."),
        assistant("Sounds good! Have a great weekend, and let me know how it goes."),
    ),
    (
        ("golden wedding",),
        ("9,000 euros",),
        ("15 June",),
        ("Lucca",),
        ("Teresa", "wheelchair"),
        ("Aldo", "shellfish"),
        ("no", "stairs"),
        ("Antico Frantoio",),
        ("45 euros per person",),
        ("ramp",),
        ("31 March",),
        ("500 euros",),
        ("Giulia",),
        ("Quartetto Belvedere",),
        ("850 euros",),
        ("15:30",),
        ("Tipografia Baroni",),
        ("Italian and English",),
        ("Toronto",),
        ("72",),
        ("Taddeucci",),
        ("Sofia", "nuts"),
        ("Forno Amedeo",),
        ("photographer",),
        ("Monday",),
    ),
)

MEETING = FactSet(
    "meeting",
    (
        _statement("Priya", "Okay, um, good morning everybody. Can you all hear me? Great."),
        _statement("Tom", "Yes, we can hear you."),
        _statement(
            "Priya",
            "Right. So today is about the launch of the heat pump app, and I'd like to be done in "
            "forty minutes. There are three points: the date, the battery problem, and the money.",
        ),
        _statement("Tom", "Mm-hmm."),
        _statement(
            "Tom",
            "Well, let me start with the date. As you know we had planned 3 September. The people "
            "from Bosch tell us that the certificate for the gateway arrives at the end of August "
            "at the earliest, so, you know, that is really tight.",
        ),
        _statement("Elena", "Yeah, it was the same last year. They are always late with those."),
        _statement("Kenji", "Hmm, yeah."),
        _statement("Elena", "I mean, I don't want to complain, they are nice people, but still."),
        _statement("Tom", "No, no, you are right. It is what it is, you know."),
        _statement("Priya", "So what do you suggest?"),
        _statement(
            "Tom",
            "I would move it by two weeks. If we launch on 17 September we have time for one test "
            "round with the 250 households in Aarhus.",
        ),
        _statement(
            "Elena", "Seventeen is fine for marketing. We have the fair in Hamburg on the 22nd."
        ),
        _statement(
            "Priya", "Okay, agreed. We launch on 17 September. Tom, you tell the people at Bosch."
        ),
        _statement("Tom", "Will do."),
        _statement("Elena", "That was quick."),
        _statement("Priya", "It was, wasn't it? Let's see how long that lasts."),
        _statement("Priya", "Second point. Kenji, the battery."),
        _statement(
            "Kenji",
            "Yes, so, um, the sensor in the cellar should last five years on one battery. What we "
            "measure is about fourteen months. The reason is the radio: it wakes up every 20 "
            "seconds "
            "instead of every 5 minutes, because the firmware 2.3.1 ignores the sleep setting.",
        ),
        _statement("Priya", "Ouch. Is that something we can fix over the air?"),
        _statement(
            "Kenji",
            "I think so, yes. I have a patch, it is in the branch sleep-fix, and in the lab it "
            "draws "
            "11 microamps now. Before it was 140. But it needs a bootloader newer than version "
            "7, and "
            "we don't know how many devices out there have that.",
        ),
        _statement(
            "Tom",
            "Support could ask for the serial numbers. Everything above HP-5500 is new enough.",
        ),
        _statement("Kenji", "Oh, that is good to know, I was not aware of that at all."),
        _statement(
            "Tom", "Yeah, it is on the label at the back, you have to turn the thing around."
        ),
        _statement("Elena", "How many have we sold, actually?"),
        _statement(
            "Tom", "In total it's 4,180, and I'd guess that two thirds are above that number."
        ),
        _statement(
            "Kenji",
            "Right. So the plan is that I send the patch to Fraunhofer for a review, and they need "
            "ten days.",
        ),
        _statement("Priya", "Good, do that. And the ones with the old bootloader?"),
        _statement(
            "Kenji", "Hmm. I'm not sure. Perhaps we have to swap them. That is an open question."
        ),
        _statement("Priya", "Okay, we leave that open. Please bring a number to the next meeting."),
        _statement("Elena", "Can we get some fresh air in here? It's so warm."),
        _statement("Tom", "Sure, I'll open the window."),
        _statement("Kenji", "It was even worse upstairs yesterday, we could hardly think."),
        _statement("Elena", "I heard that somebody will come and look at it at some point."),
        _statement("Tom", "They have been saying that for as long as I have worked here."),
        _statement("Priya", "Thanks. Third point: money."),
        _statement(
            "Elena",
            "So the campaign was planned at 80,000 euros. I have the offers now. The agency "
            "Nordlys "
            "wants 95,000, and Studio Brink would do it for 72,000, without the film.",
        ),
        _statement("Tom", "That is quite a difference, I have to say."),
        _statement(
            "Elena", "It is, and I have to say that both of them made a good impression on me."
        ),
        _statement("Priya", "Do we need a film?"),
        _statement(
            "Elena",
            "Honestly, no. The installers look at data sheets. I would rather spend it on "
            "training, "
            "say six workshops for the installers.",
        ),
        _statement("Tom", "I like that. The installers in Malmö asked for it twice."),
        _statement("Priya", "Fine. Then we choose Studio Brink, and the film is cancelled."),
        _statement("Elena", "Okay. And the rest, the 8,000, goes to the workshops?"),
        _statement("Priya", "Yes. Who runs them?"),
        _statement("Elena", "Ingrid could, she did it in Gothenburg."),
        _statement(
            "Priya", "Good, so Ingrid runs the six workshops, the first one in Malmö in October."
        ),
        _statement(
            "Tom",
            "One more thing: the app store rejected the last build, because the privacy text is "
            "missing in Danish.",
        ),
        _statement("Kenji", "Oh, right, that was build 418."),
        _statement("Priya", "Tom, can you get the Danish text from legal by Friday?"),
        _statement("Tom", "Yes, I'll ask Mette."),
        _statement(
            "Priya",
            "Correction to the first point, sorry: Bosch just wrote, the certificate comes on 5 "
            "August already. The date stays, we simply have more time for the test.",
        ),
        _statement("Elena", "Wonderful."),
        _statement("Tom", "See, I told you they are nice people."),
        _statement("Elena", "All right, all right, I take everything back."),
        _statement(
            "Priya", "All right, thanks everybody. Next meeting is on Thursday at 9:15, same room."
        ),
        _statement("Tom", "Bye."),
        _statement("Kenji", "Bye bye."),
    ),
    (
        ("heat pump app",),
        ("17 September",),
        ("Bosch",),
        ("5 August",),
        ("250 households",),
        ("Aarhus",),
        ("Hamburg",),
        ("five years",),
        ("fourteen months",),
        ("20 seconds",),
        ("2.3.1",),
        ("sleep-fix",),
        ("11 microamps",),
        ("bootloader", "version 7"),
        ("HP-5500",),
        ("4,180",),
        ("Fraunhofer",),
        ("open question",),
        ("80,000",),
        ("Studio Brink",),
        ("72,000",),
        ("film",),
        ("Ingrid", "workshops"),
        ("Malmö",),
        ("Danish",),
        ("418",),
        ("Mette",),
        ("Thursday at 9:15",),
    ),
)

FACT_SETS = (CODING, PLANNING, MEETING)
