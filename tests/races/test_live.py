from tests.support.factories import make_user
def test_revocation(live):
    u=make_user(live.rt)
    with live.client_on_each_worker() as (a,b):
        a.login(u).ok()
        b.cookies.update(a.cookies)
        assert a.worker()!=b.worker()
        b.me().ok()
        a.post("/auth/logout").ok()
        b.me().fails(401,"auth.token_invalid")
