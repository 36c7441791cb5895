def test_smoke(api):
    api.post("/auth/check").ok()
    api.sign_up_admin().ok(201)
    api.login("admin", "correct horse battery").ok()
    api.me().ok()
    api.refresh().ok()
    b = api.browser()
    b.refresh().ok()
    assert set(b.cookies) == {"service_access", "service_refresh", "service_csrf"}
    b.post("/auth/logout").ok()
    assert b.cookies == {}
    api.get("/nothing").fails(404, "endpoint.not_found")
    api.get("/auth/login").fails(405, "endpoint.not_found")

def test_user(signed_in, user):
    assert signed_in.me().ok()["id"] == user.id
