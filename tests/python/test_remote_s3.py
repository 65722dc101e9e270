"""s3://: real servers on this machine, one that checks signatures against users and policies (moto), and an independent
one (rclone); botocore says what a signature must be."""

import concurrent.futures
import json
import re
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from fault_proxy import FaultProxy
from far import free_port
from imagesets import N_IMAGES, gather, same, train, write_folder
from servers import KEY, SECRET, missing, moto, rclone

import drapps

try:
    import boto3
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
except ImportError:
    missing("boto3", "pip install -r scripts/remote-tests.txt")

REGION = "eu-west-3"
MANY = 2010  # keys of three pages
VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
             "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_CA_BUNDLE")  # fmt: skip
ODD_KEYS = ("a b.jpg", "plus+and&more=1.jpg", "ünï~cöde.jpg", "per%20cent.jpg", "(brackets) 'n' $,;:@!*.jpg",
            "q?x#y.jpg")  # fmt: skip


@pytest.fixture(autouse=True)
def _environment(monkeypatch, tmp_path):
    """No credentials of whoever runs the tests."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_REGION", REGION)


def use(monkeypatch, endpoint, key=KEY, secret=SECRET, session=None):
    """Set what the standard variables say."""
    values = {"AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": key, "AWS_SECRET_ACCESS_KEY": secret,
              "AWS_SESSION_TOKEN": session}  # fmt: skip
    for name, value in values.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)


def near(root):
    with train(root).loader(batch_size=5, shuffle=True, seed=3, workers=2, output="numpy") as loader:
        return gather(loader)


def far(path, **options):
    with train(drapps.read(path, **options)).loader(batch_size=5, shuffle=True, seed=3, workers=4,
                                                    output="numpy") as loader:  # fmt: skip
        return gather(loader)


def client(url, key=KEY, secret=SECRET, service="s3", session=None):
    config = botocore.client.Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0})
    return boto3.client(service, endpoint_url=url, aws_access_key_id=key, aws_secret_access_key=secret,
                        aws_session_token=session, region_name=REGION, config=config)  # fmt: skip


def put_folder(s3, bucket, prefix, root):
    for path in sorted(p for p in root.rglob("*") if p.is_file() and not p.name.startswith(".")):
        s3.put_object(Bucket=bucket, Key=f"{prefix}/{path.relative_to(root)}", Body=path.read_bytes())


class Store:
    """moto's server with a bucket, and users whose signatures it checks."""

    def __init__(self, url, root):
        self.url = url
        s3, iam = client(url), client(url, service="iam")
        s3.create_bucket(Bucket="sets", CreateBucketConfiguration={"LocationConstraint": REGION})
        put_folder(s3, "sets", "photos", root)
        put_folder(s3, "sets", "packed", root.parent / "packed")
        for name in ODD_KEYS:
            s3.put_object(Bucket="sets", Key=f"odd/{name}", Body=next(root.rglob("*.jpg")).read_bytes())
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda i: s3.put_object(Bucket="sets", Key=f"many/a/{i:05}.jpg", Body=b"x"), range(MANY)))
        with open(next((root.parent / "packed").glob("*.tar")), "rb") as tar:
            s3.put_object(Bucket="sets", Key="shards/train-0.tar", Body=tar.read())
        self.key, self.secret = self._user(iam, "reader", "s3:GetObject", "s3:ListBucket")
        self.listing_key, self.listing_secret = self._user(iam, "lister", "s3:ListBucket")
        role = iam.create_role(RoleName="training", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        iam.put_role_policy(RoleName="training", PolicyName="p", PolicyDocument=self._policy("s3:*"))
        self.session = client(url, service="sts").assume_role(RoleArn=role, RoleSessionName="tests")["Credentials"]
        request = urllib.request.Request(f"{url}/moto-api/reset-auth", b"0", {"Content-Type": "text/plain"})
        urllib.request.urlopen(request).read()  # from now on signatures are checked

    @staticmethod
    def _policy(*actions):
        return json.dumps({"Version": "2012-10-17",
                           "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}]})  # fmt: skip

    def _user(self, iam, name, *actions):
        iam.create_user(UserName=name)
        iam.put_user_policy(UserName=name, PolicyName="p", PolicyDocument=self._policy(*actions))
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return key["AccessKeyId"], key["SecretAccessKey"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A folder of images, and the same packed beside it."""
    root = write_folder(tmp_path_factory.mktemp("s3") / "photos")
    drapps.read(root).pack(root.parent / "packed")
    return root


@pytest.fixture(scope="module")
def store(root):
    with moto() as url:
        yield Store(url, root)


@pytest.fixture
def signed(store, monkeypatch):
    """The store, and the environment of somebody who may read it."""
    use(monkeypatch, store.url, store.key, store.secret)
    return store


# --- reading from a store that checks who reads ---


def test_a_folder_gives_the_batches_of_the_local_folder(signed, root):
    assert same(far("s3://sets/photos"), near(root))
    assert same(far("s3://sets/photos/"), near(root))


def test_packed_sets_and_shards(signed, root):
    assert same(far("s3://sets/packed"), near(root.parent / "packed"))
    tar = next((root.parent / "packed").glob("*.tar"))
    assert same(far("s3://sets/shards/train-0.tar"), near(tar))
    assert same(far("s3://sets/shards/train-*.tar"), near(tar))
    assert same(far("s3://sets/shards"), near(tar))


def test_keys_of_any_characters(signed):
    pipe = drapps.read("s3://sets/odd", format="flat")
    assert sorted(sample["key"] for sample in pipe) == sorted(ODD_KEYS)
    assert {len(bytes(sample["image"])) > 100 for sample in pipe} == {True}


def test_a_prefix_with_odd_characters(signed, root):
    """A prefix that goes into the query of a listing, and the name of one object."""
    assert drapps.read("s3://sets/odd", format="flat").dataset.size == len(ODD_KEYS)
    with pytest.raises(drapps.FileMissingError, match=r"s3://sets/o d\+d/ü/: nothing is there"):
        drapps.read("s3://sets/o d+d/ü")


@pytest.mark.parametrize(
    ("key", "secret", "why"),
    [
        (None, "wrong", "the secret key is wrong"),
        ("AKIANOBODYKNOWSTHISKEY", None, "the access key is not known"),
    ],
)
def test_wrong_keys_are_refused(store, monkeypatch, key, secret, why):
    use(monkeypatch, store.url, key or store.key, secret or store.secret)
    with pytest.raises(drapps.IOError, match=f"s3://sets/photos.*{why}.*403"):
        drapps.read("s3://sets/photos")


def test_what_a_policy_does_not_allow(store, monkeypatch):
    """Who may list and not read gets an error for each sample, which names the object."""
    use(monkeypatch, store.url, store.listing_key, store.listing_secret)
    pipe = drapps.read("s3://sets/photos", format="folder")
    with pytest.raises(drapps.IOError, match=r"s3://sets/photos/ant/\d+.jpg: access denied.*403"):
        pipe[0]  # noqa: B018


def test_session_tokens(store, monkeypatch, root):
    s = store.session
    use(monkeypatch, store.url, s["AccessKeyId"], s["SecretAccessKey"], s["SessionToken"])
    assert same(far("s3://sets/photos"), near(root))
    monkeypatch.setenv("AWS_SESSION_TOKEN", "invented")
    with pytest.raises(drapps.IOError, match="s3://sets/photos.*token"):
        drapps.read("s3://sets/photos")
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    with pytest.raises(drapps.IOError, match="s3://sets/photos.*403"):
        drapps.read("s3://sets/photos")


def test_profiles(store, monkeypatch, root, tmp_path):
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = x\naws_secret_access_key = y\n"
        f"[team]\naws_access_key_id = {store.key}\naws_secret_access_key = {store.secret}\n"
    )
    (tmp_path / "config").write_text(f"[profile team]\nregion = {REGION}\nendpoint_url = {store.url}\n")
    assert same(far("s3://sets/photos", credentials="team"), near(root))
    monkeypatch.setenv("AWS_PROFILE", "team")
    assert same(far("s3://sets/photos"), near(root))
    with pytest.raises(drapps.ArgumentError, match='profile of ~/.aws, got "nobody"'):
        drapps.read("s3://sets/photos", credentials="nobody")


def test_no_credentials_at_all(store, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", store.url)
    with pytest.raises(drapps.ArgumentError, match="s3://sets/photos: no credentials: set AWS_ACCESS_KEY_ID"):
        drapps.read("s3://sets/photos")


def test_what_is_not_there(signed):
    for path, why in [("s3://sets/nothing", "s3://sets/nothing/: nothing is there"),
                      ("s3://sets/shards/none.tar", "s3://sets/shards/none.tar: .*not found|no such object"),
                      ("s3://nobodys-bucket/x", "s3://nobodys-bucket/x/: no such bucket .HTTP 404 NoSuchBucket"),
                      ("s3://sets/none-{0..1}.tar", "s3://sets/none-0.tar: .*not found|no such object")]:  # fmt: skip
        with pytest.raises(drapps.FileMissingError, match=why):
            drapps.read(path)


def test_objects_that_change_are_noticed(store, monkeypatch, root):
    """A shard that was replaced while it is open is an error, and never another image under an old name."""
    s = store.session
    use(monkeypatch, store.url, s["AccessKeyId"], s["SecretAccessKey"], s["SessionToken"])
    s3 = client(store.url, s["AccessKeyId"], s["SecretAccessKey"], session=s["SessionToken"])
    tar = next((root.parent / "packed").glob("*.tar")).read_bytes()
    s3.put_object(Bucket="sets", Key="change.tar", Body=tar)
    pipe = drapps.read("s3://sets/change.tar")
    before = bytes(pipe[0]["image"])
    s3.put_object(Bucket="sets", Key="change.tar", Body=tar[:600] + bytes(600) + tar[1200:])
    with pytest.raises(drapps.StateError, match="s3://sets/change.tar: was changed while the data set is open"):
        pipe[0]  # noqa: B018
    s3.put_object(Bucket="sets", Key="change.tar", Body=tar)
    assert bytes(pipe[0]["image"]) == before


# --- another server ---


@pytest.fixture(scope="module")
def rclone_url(root):
    with rclone(root.parent) as url:
        yield url


def test_a_second_server(rclone_url, monkeypatch, root):
    """rclone's folders are its buckets: the folder of images is a bucket of its own."""
    use(monkeypatch, rclone_url)
    assert same(far("s3://photos"), near(root))
    assert same(far("s3://packed"), near(root.parent / "packed"))


@pytest.mark.parametrize(("key", "secret"), [(KEY, "not the secret"), ("notthekey", SECRET)])
def test_a_second_server_refuses_wrong_keys(rclone_url, monkeypatch, key, secret):
    use(monkeypatch, rclone_url, key, secret)
    with pytest.raises(drapps.IOError, match="s3://photos.*403"):
        drapps.read("s3://photos")


def test_listings_of_many_pages(signed, monkeypatch):
    """A page has 1,000 keys at most.  Each folder is listed once."""
    with FaultProxy(("127.0.0.1", int(signed.url.rpartition(":")[2]))) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        dataset = drapps.read("s3://sets/many", index=False).dataset
        assert dataset.size == MANY
        assert [dataset.key(i) for i in (0, 999, 1000, MANY - 1)] == [f"a/{i:05}.jpg" for i in (0, 999, 1000, MANY - 1)]
        opened = proxy.requests
        assert drapps.read("s3://sets/many", index=False).dataset.size == MANY
        assert proxy.requests == 2 * opened <= 30  # three pages, and what finds out the format


# --- signatures ---


class Recorder(ThreadingHTTPServer):
    """Keeps every request; answers listings with two pages of one odd key each, and objects with a few bytes."""

    daemon_threads = True
    PAGE = """<?xml version="1.0"?><ListBucketResult><IsTruncated>{more}</IsTruncated>{token}<Contents>
<Key>{prefix}{name}</Key><Size>4</Size><ETag>"t"</ETag></Contents></ListBucketResult>"""

    def __init__(self):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self.server.seen.append((self.command, self.path, dict(self.headers)))
                body = b"data"
                if "list-type=2" in self.path:
                    first = "continuation-token" not in self.path
                    body = Recorder.PAGE.format(
                        more="true" if first else "false", prefix="pre fix/ü/" if "prefix" in self.path else "",
                        token="<NextContinuationToken>a+b/c= ~*&amp;d</NextContinuationToken>" if first else "",
                        name="x+1 (ü).jpg" if first else "%41~'.jpg").encode()  # fmt: skip
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("ETag", '"t"')
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        self.seen = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


def signature_of(request, server, session):
    """What botocore makes of the same request: the signature, and the headers that must be signed."""
    method, path, headers = request
    match = re.fullmatch(r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, ?"
                         r"SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})", headers["Authorization"])  # fmt: skip
    assert match, headers["Authorization"]
    key, date, region, signed, signature = match.groups()
    lower = {name.lower(): value for name, value in headers.items()}
    aws = botocore.awsrequest.AWSRequest(method, server.url + path, {n: lower[n] for n in signed.split(";")})
    auth = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(KEY, SECRET, session), "s3", region)
    aws.context["timestamp"] = lower["x-amz-date"]
    assert (key, region, date) == (KEY, REGION, lower["x-amz-date"][:8])
    wanted = auth.signature(auth.string_to_sign(aws, auth.canonical_request(aws)), aws)
    return signature, wanted, signed.split(";")


@pytest.mark.parametrize("session", [None, "token/with+odd=characters=="])
def test_signatures_are_those_of_botocore(monkeypatch, session):
    with Recorder() as server:
        use(monkeypatch, server.url, session=session)
        for path in ("s3://bucket", "s3://bucket/pre fix/ü"):
            pipe = drapps.read(path, format="flat", index=False)
            assert pipe.dataset.size == 2
            assert [bytes(sample["image"]) for sample in pipe] == [b"data"] * 2
        assert len(server.seen) >= 8
        for request in server.seen:
            signature, wanted, signed = signature_of(request, server, session)
            assert signature == wanted, request
            assert {"host", "x-amz-date", "x-amz-content-sha256"} <= set(signed)
            assert ("x-amz-security-token" in signed) == (session is not None)
        paths = [path for _, path, _ in server.seen]
        assert any("continuation-token=a%2Bb%2Fc%3D%20~%2A%26d&" in path for path in paths)
        assert "/bucket/pre%20fix/%C3%BC/x%2B1%20%28%C3%BC%29.jpg" in paths


def test_anonymous_requests_are_not_signed(monkeypatch):
    with Recorder() as server:
        use(monkeypatch, server.url)
        drapps.read("s3://bucket", format="flat", index=False, credentials="anonymous")[0]  # noqa: B018
        names = {name.lower() for _, _, headers in server.seen for name in headers}
        assert "host" in names and not [name for name in names if "amz" in name or name == "authorization"]


# --- errors, of which a store of one's own has few ---


def error(code, more=""):
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>m</Message>{more}</Error>"


@pytest.mark.parametrize(
    ("status", "headers", "body", "why"),
    [
        (400, "", error("ExpiredToken"), "the session token has expired: get a new one .HTTP 400 ExpiredToken"),
        (403, "", error("RequestTimeTooSkewed"), "clock differs too much"),
        (301, "x-amz-bucket-region: us-west-2\r\n", error("PermanentRedirect"),
         "another region: us-west-2: set AWS_REGION"),
        (400, "", error("AuthorizationHeaderMalformed", "<Region>ap-south-1</Region>"),
         "another region: ap-south-1: set AWS_REGION"),
        (403, "", error("InvalidObjectState"), "archived: restore it first"),
        (403, "", error("SomethingNew"), "HTTP 403 SomethingNew: m"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(signed, monkeypatch, status, headers, body, why):
    port = int(signed.url.rpartition(":")[2])
    with FaultProxy(("127.0.0.1", port)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        proxy.plan = lambda n: ("status", status, headers, body)
        with pytest.raises(drapps.IOError, match="s3://sets/photos.*" + why):
            drapps.read("s3://sets/photos")


def test_a_token_that_expires_during_an_epoch(signed, monkeypatch):
    """The epoch ends with an error that names an object: waiting would not help."""
    port = int(signed.url.rpartition(":")[2])
    with FaultProxy(("127.0.0.1", port)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        pipe = drapps.read("s3://sets/photos")
        begun = proxy.requests
        proxy.plan = lambda n: ("status", 400, "", error("ExpiredToken")) if n >= begun + 10 else None
        with pytest.raises(drapps.IOError, match=r"s3://sets/photos/\w+/\d+.jpg: the session token has expired"):
            with train(pipe).loader(batch_size=4, workers=2, output="numpy") as loader:
                for _ in loader:
                    pass


def test_faults_lose_nothing(signed, monkeypatch, root):
    port = int(signed.url.rpartition(":")[2])
    with FaultProxy(("127.0.0.1", port)) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        kinds = {3: "reset", 5: "truncate", 7: ("status", 503, "Retry-After: 0\r\n", error("SlowDown"))}
        proxy.plan = lambda n: kinds.get(n % 9)
        assert same(far("s3://sets/photos"), near(root))
        assert proxy.faults["reset"] and proxy.faults["truncate"] and proxy.faults["status"]


def test_nobody_is_there(monkeypatch):
    use(monkeypatch, f"http://127.0.0.1:{free_port()}")
    with pytest.raises(drapps.IOError, match="s3://sets/photos/?: .*connect"):
        drapps.read("s3://sets/photos")
    use(monkeypatch, "127.0.0.1:80")
    with pytest.raises(drapps.ArgumentError, match="endpoint must begin with http:// or https://, got 127.0"):
        drapps.read("s3://sets/photos")


@pytest.mark.parametrize("path", ["s3://", "s3:///x", "s3://bu cket/x", "s3://../x"])
def test_names_that_are_none(path):
    with pytest.raises(drapps.Error, match="s3://"):
        drapps.read(path)


def test_a_folder_as_a_data_set_of_torch(signed, root):
    """What ImageFolder is to a folder."""
    images = drapps.RemoteImageFolder("s3://sets/photos")
    local = drapps.RemoteImageFolder(root)
    assert len(images) == N_IMAGES and images.classes == local.classes and images.samples == local.samples
    assert images[7][1] == local[7][1] and images[7][0].tobytes() == local[7][0].tobytes()
