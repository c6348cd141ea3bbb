//! Ports are dense and lie where the roster has them; requesters and peers lead to their components.

use super::*;

fn roster(hub: bool, paths: bool, switched: bool) -> Roster {
    Roster { hub, paths, switched, ..Roster::new(3, Interleave::new(4, 2, 256)) }
}

/// The number of a home's port to a requester.
fn to_requester(home: Ports, who: Requester) -> u16 {
    let role = home.roster.requester_roles().nth(who.index());
    home.to(role.unwrap()).0
}

fn roles() -> Vec<Endpoint> {
    let sms = (0..3).map(Endpoint::Sm);
    let slices = (0..4).map(Endpoint::Slice);
    let controllers = (0..2).map(Endpoint::Controller);
    let others = [Endpoint::CommandProcessor, Endpoint::Hub, Endpoint::RequestSwitch, Endpoint::ReplySwitch];
    sms.chain(slices).chain(controllers).chain(others).collect()
}

#[test]
fn ports_are_dense_and_no_two_roles_share_one() {
    for bits in 0..8 {
        let roster = roster(bits & 1 == 1, bits & 2 == 2, bits & 4 == 4);
        for owner in roles() {
            let ports = roster.ports(owner);
            let mut found: Vec<u16> = roles().iter().filter_map(|&role| ports.find(role)).map(|port| port.0).collect();
            found.sort_unstable();
            let dense: Vec<u16> = (0..found.len() as u16).collect();
            assert_eq!(found, dense, "{owner} of {roster:?}");
            let counted: u16 = roster.groups(owner).iter().map(|(_, count)| count).sum();
            assert_eq!(found.len(), usize::from(counted), "{owner} of {roster:?}");
        }
    }
}

#[test]
fn a_slice_reaches_sms_through_the_ports_of_their_gpcs_and_the_command_processor_without() {
    let roster = Roster { gpc_ports: 2, ..Roster::new(7, Interleave::new(4, 2, 256)) };
    let slice = roster.ports(Endpoint::Slice(1));
    // Behind seven SMs, the command processor and the controller. Of four TPCs each GPC has two.
    let stage = |requester| slice.to_stage_of(requester).map(|to| to.port.0);
    let of_sms = [0, 3, 4, 6].map(|sm| stage(Requester::sm(sm)));
    assert_eq!(of_sms, [Some(9), Some(9), Some(10), Some(10)]);
    assert_eq!(stage(roster.requester(Endpoint::CommandProcessor).unwrap()), None);
    let gpc = roster.ports(Endpoint::GpcPort(1));
    assert_eq!([4, 6].map(|sm| gpc.to(Endpoint::Sm(sm)).0), [0, 2]);
    assert_eq!((gpc.find(Endpoint::Sm(3)), gpc.find(Endpoint::Slice(0))), (None, None));
    assert_eq!(roster.ports(Endpoint::Sm(0)).to_switch().map(|to| to.port), None);
}

#[test]
fn an_sm_reaches_slices_command_processor_hub_controllers_and_switch_in_this_order() {
    let ports = roster(true, true, true).ports(Endpoint::Sm(1));
    let to = [
        Endpoint::Slice(3),
        Endpoint::CommandProcessor,
        Endpoint::Hub,
        Endpoint::Controller(1),
        Endpoint::RequestSwitch,
    ];
    assert_eq!(to.map(|role| ports.to(role).0), [3, 4, 5, 7, 8]);
    assert_eq!(ports.to_switch().map(|to| to.port.0), Some(8));
    let ports = roster(false, false, false).ports(Endpoint::Sm(1));
    assert_eq!((ports.to(Endpoint::CommandProcessor).0, ports.switch), (4, None));
}

#[test]
fn a_controller_has_no_port_to_itself_and_reaches_its_own_slices_only() {
    let ports = roster(true, true, false).ports(Endpoint::Controller(1));
    assert_eq!([2, 3].map(|slice| ports.to(Endpoint::Slice(slice)).0), [0, 1]);
    let others = [Endpoint::Sm(2), Endpoint::Controller(0), Endpoint::Hub];
    assert_eq!(others.map(|role| ports.to(role).0), [4, 5, 6]);
    for role in [Endpoint::Slice(1), Endpoint::Slice(4), Endpoint::Controller(1), Endpoint::Controller(2)] {
        assert_eq!(ports.find(role), None, "{role}");
    }
}

#[test]
fn a_machine_of_cores_has_its_cores_and_its_os_where_others_have_sms_and_a_command_processor() {
    let roster = Roster::of_cores(3, Interleave::new(4, 2, 256));
    let home = roster.ports(Endpoint::Home(3));
    let to = [Endpoint::Core(2), Endpoint::Os, Endpoint::Controller(1)].map(|role| home.to(role).0);
    assert_eq!((to, home.find(Endpoint::Sm(0))), ([2, 3, 4], None));
    assert_eq!([Requester::core(1), Requester::os(3)].map(|who| to_requester(home, who)), [1, 3]);
    // With another server there is a poster, behind the OS.
    let linked = Roster { peers: 2, paths: true, ..roster };
    let of = |owner, to: &[Endpoint]| to.iter().map(|&role| linked.ports(owner).to(role).0).collect::<Vec<_>>();
    assert_eq!(of(Endpoint::Core(0), &[Endpoint::Os, Endpoint::Controller(1), Endpoint::Poster]), [4, 6, 7]);
    assert_eq!(of(Endpoint::Home(3), &[Endpoint::Os, Endpoint::Controller(1), Endpoint::Poster]), [3, 4, 5]);
    assert_eq!(of(Endpoint::Poster, &[Endpoint::Home(3), Endpoint::Core(2), Endpoint::Server(1)]), [3, 6, 8]);
    assert_eq!(of(Endpoint::Os, &[Endpoint::Home(0), Endpoint::Core(2), Endpoint::Nic]), [0, 6, 7]);
    assert_eq!(of(Endpoint::Nic, &[Endpoint::Controller(0), Endpoint::Server(0)]), [0, 2]);
    assert_eq!(to_requester(linked.ports(Endpoint::Home(3)), Requester::poster(3, false)), 5);
    assert_eq!(linked.ports(Endpoint::Poster).requester(), Requester::poster(3, false));
    let os = roster.ports(Endpoint::Os);
    assert_eq!((os.requester(), os.to(Endpoint::Core(0)).0), (Requester::os(3), 4));
    let core = roster.ports(Endpoint::Core(0));
    assert_eq!((core.to(Endpoint::Home(1)).0, core.to(Endpoint::Os).0), (1, 4));
}

#[test]
fn a_nic_reaches_home_slices_where_it_writes_to_them_and_is_a_requester_then() {
    let roster = Roster { clients: 2, paths: true, ..Roster::of_cores(3, Interleave::new(4, 2, 256)) };
    assert_eq!((roster.requester(Endpoint::Nic), roster.requesters()), (None, 4));
    assert_eq!(roster.ports(Endpoint::Nic).find(Endpoint::Home(0)), None);
    let ddio = Roster { ddio: true, ..roster };
    assert_eq!((ddio.requester(Endpoint::Nic), ddio.requesters()), (Some(Requester::nic(3)), 5));
    let (nic, home) = (ddio.ports(Endpoint::Nic), ddio.ports(Endpoint::Home(3)));
    assert_eq!([Endpoint::Client(1), Endpoint::Controller(1), Endpoint::Home(3)].map(|to| nic.to(to).0), [1, 3, 7]);
    let requesters = [Requester::core(2), Requester::os(3), Requester::nic(3)];
    assert_eq!(requesters.map(|who| to_requester(home, who)), [2, 3, 5]);
    assert_eq!(home.peer(Peer::Nic).1, home.to(Endpoint::Nic));
}

#[test]
fn requesters_are_the_sms_and_then_the_command_processor() {
    let roster = roster(false, false, false);
    let ports = roster.ports(Endpoint::Slice(0));
    let host = roster.ports(Endpoint::CommandProcessor).requester();
    assert_eq!((host, roster.requesters()), (Requester::command_processor(3), 4));
    assert_eq!((ports.sm_of(Requester::sm(2)), ports.sm_of(host)), (Some(2), None));
    assert!(matches!(ports.to_requester(Requester::sm(2)), ToEither::One(to) if to.port.0 == 2));
    assert!(matches!(ports.to_requester(host), ToEither::Other(to) if to.port.0 == 3));
    assert_eq!((ports.to_memory().port.0, ports.to(Endpoint::Controller(0)).0), (4, 4));
    assert_eq!(ports.find(Endpoint::Controller(1)), None, "another channel's");
}

#[test]
fn a_peer_is_found_by_number_or_by_an_address() {
    let roster = roster(true, true, false);
    let ports = roster.ports(Endpoint::Sm(0));
    for chunk in 0..16 {
        let address = durawarp_kernel::memory::NVM_BASE + 256 * chunk;
        let slice = roster.map.slice_of(address) as u16;
        assert_eq!(ports.peer(Peer::SliceOf(address)), ports.peer(Peer::Slice(slice)));
        assert_eq!(ports.peer(Peer::ControllerOf(address)), ports.peer(Peer::Controller(slice / 2)));
    }
}

#[test]
#[should_panic(expected = "no link leads from l2.0 to Controller(0)")]
fn a_slices_handler_does_not_write_to_its_controller() {
    roster(true, true, false).ports(Endpoint::Slice(0)).peer(Peer::Controller(0));
}

#[test]
fn a_peer_of_the_other_machine_is_not_found() {
    let gpu = roster(true, true, false);
    let cpu = Roster { hub: true, paths: true, ..Roster::of_cores(3, Interleave::new(4, 2, 256)) };
    let finds = |roster: Roster, peer| std::panic::catch_unwind(|| roster.ports(Endpoint::Hub).peer(peer)).is_ok();
    for peer in [Peer::Sm(0), Peer::Slice(1), Peer::SliceOf(0)] {
        assert!(finds(gpu, peer) && !finds(cpu, peer), "{peer:?}");
    }
    for peer in [Peer::Core(0), Peer::Home(1), Peer::HomeOf(0)] {
        assert!(finds(cpu, peer) && !finds(gpu, peer), "{peer:?}");
    }
}

#[test]
#[should_panic(expected = "no link leads from hub to Host")]
fn nobody_writes_to_the_hosts_handler() {
    roster(true, true, false).ports(Endpoint::Hub).peer(Peer::Host);
}
