use super::*;

#[test]
fn a_deploy_that_a_kill_cut_is_gone_and_its_name_is_free() {
    let store = Store::open(None).unwrap();
    let endpoints = Endpoints::open(store.clone(), Keep::off()).unwrap();
    let now = Timestamp::UNIX_EPOCH;
    let deploying =
        |name: &str| Endpoint::deploying(name.to_owned(), "o", name.to_owned(), "t", now);
    endpoints.reserve(deploying("cut")).unwrap();
    endpoints.reserve(deploying("whole")).unwrap();
    endpoints
        .amend(&deploying("whole"), |endpoint| endpoint.into_live(now))
        .unwrap();

    let endpoints = Endpoints::open(store, Keep::off()).unwrap();

    let names: Vec<String> = endpoints.list("o").into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["whole"]);
    endpoints.reserve(deploying("cut")).unwrap();
}

#[test]
fn an_organization_has_a_hundred_endpoints_and_no_more() {
    let endpoints = Endpoints::open(Store::open(None).unwrap(), Keep::off()).unwrap();
    let reserve = |org: &str, n: usize| {
        let now = Timestamp::UNIX_EPOCH;
        endpoints.reserve(Endpoint::deploying(
            "u".to_owned(),
            org,
            n.to_string(),
            "t",
            now,
        ))
    };
    for n in 0..PER_ORGANIZATION_MAX {
        reserve("o", n).unwrap();
    }

    assert!(matches!(
        reserve("o", PER_ORGANIZATION_MAX),
        Err(error) if error.status() == 422
    ));
    assert!(reserve("other", 0).is_ok());
}

#[tokio::test]
async fn an_endpoint_begins_without_the_traffic_of_one_that_had_its_name() {
    let store = Store::open(None).unwrap();
    let keep = Keep::new(&store, true);
    let now = Timestamp::UNIX_EPOCH;
    let deploying = |uid: &str| Endpoint::deploying(uid.to_owned(), "o", "e".to_owned(), "t", now);
    let refused = Observation {
        at: now,
        took_ms: 1,
        outcome: traffic::RequestOutcome::Failed(503),
    };
    type Ends = fn(&Endpoints, &Endpoint) -> Result<(), ServiceError>;
    let ends: [(&str, Ends); 2] = [
        ("its deploy failed", |endpoints, which| {
            endpoints.abandon(which)
        }),
        ("it was deleted", |endpoints, which| {
            endpoints.remove(&which.org, &which.name)
        }),
    ];
    for (what, end) in ends {
        let endpoints = Endpoints::open(store.clone(), keep.clone()).unwrap();
        let first = deploying("first");
        endpoints.reserve(first.clone()).unwrap();
        endpoints.observe(&first, &refused);
        endpoints.queue_hours();
        keep.commit().await.unwrap();

        end(&endpoints, &first).unwrap();
        let second = deploying("second");
        endpoints.reserve(second.clone()).unwrap();
        endpoints
            .amend(&second, |endpoint| endpoint.into_live(now))
            .unwrap();
        keep.commit().await.unwrap();

        let endpoints = Endpoints::open(store.clone(), keep.clone()).unwrap();
        let hours = |_: &Endpoint, traffic: &Traffic| traffic.hours().between(0, 0).count();
        assert_eq!(endpoints.look("o", "e", hours).unwrap(), 0, "{what}");
        endpoints.remove("o", "e").unwrap();
    }
}
