import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Signing out of a store", .timeLimit(.minutes(20)))
struct SignOutTests {
  private let disk = MemoryFileSystem()
  private let peer: SwitchedPeer

  init() throws {
    peer = try SwitchedPeer(
      options: SyncHandler.Options(validators: [
        SyncValidator(prefix: "bad") { _, _ in SyncRejection(code: "bad", message: "not like this")
        }
      ]))
  }

  private func open() throws -> Store {
    try Store.openBlocking(
      at: "store",
      configuration: Store.Configuration(
        environment: Store.Environment(fileSystem: disk)))
  }

  /// Writes what a user may leave behind: acknowledged and taken entries, and unsent ones of all
  /// kinds. All values begin with "A".
  private func use(_ store: Store, as replicator: Replicator) async throws {
    let other = try memoryStore()
    let second = try other.replicator(named: "home", peer: SwitchedPeer(sharing: peer))
    try await other.put("taken", "A")
    try await other.put("contested", "A base")
    try await other.put("gone", "A")
    _ = try await second.syncOnce()
    for key in ["sent", "edited", "deleted", "removed"] { try await store.put(Key(key), "A") }
    _ = try await replicator.syncOnce()
    try await store.delete("removed")
    _ = try await replicator.syncOnce()
    try await other.put("contested", "A theirs")
    _ = try await second.syncOnce()
    try await store.put("contested", "A mine")
    let refused = try await store.put("bad", "A").sequences.lowerBound
    _ = try await replicator.syncOnce()
    #expect(try await store.pending().needsDecision == 1)
    #expect(try await store.pending().parked == 1)
    try await store.put("edited", "A again")
    try await store.delete("deleted")
    try await store.delete("gone")
    try await store.put("blocked", "A", options: PutOptions(after: [refused]))
    try await store.put("unsent", "A", options: PutOptions(priority: 1))
    try await store.write(atomicAtPeer: true) { batch in
      try batch.put("group 1", "A")
      try batch.put("group 2", "A")
    }
    let film = try await store.attach([UInt8](repeating: 65, count: 300_000))
    try await store.put("film", "A", options: PutOptions(attachment: film))
  }

  private func keys(_ store: Store) throws -> Set<String> {
    Set(try SyncWorld.state(store.engine).keys)
  }

  /// The next user writes, and replicates: nothing of the former one goes out.
  private func expectNothingGoes(
    from store: Store, named name: String, to next: SwitchedPeer, _ comment: Comment? = nil
  ) async throws {
    let replicator = try store.replicator(named: name, peer: next)
    try await store.put("unsent", "B")
    try await store.put("group 1", "B")
    let first = try await replicator.syncOnce(deadline: .now + .seconds(600))
    #expect(first.isComplete && first.pending.isEmpty, comment)
    // A wider reach and another scope look for changes that were never sent.
    try await replicator.setScope(SyncScope(keyPrefixes: ["a", "u", "g", "b", "s", "d", "e"]))
    _ = try await replicator.syncOnce()
    try await replicator.setScope(.everything)
    _ = try await replicator.syncOnce()
    let pushed = next.state.withLock { $0.pushes.flatMap(\.changes) }
    #expect(Set(pushed.map(\.name)) == ["unsent", "group 1"], comment)
    #expect(pushed.allSatisfy { $0.kind == .put && $0.content.value == [66] }, comment)
    #expect(next.state.withLock { $0.parts.isEmpty }, comment)
    #expect(try keys(store) == keys(next.store), comment)
    for key in try keys(store) { #expect(try store.text(key) == next.text(key), comment) }
  }

  @Test(
    "nothing of the former user goes out by the next one, who has what is his",
    arguments: ["home", "work"], [true, false])
  func nothingGoes(name: String, isSameServer: Bool) async throws {
    var store = try open()
    var replicator: Replicator? = try store.replicator(
      named: "home", peer: peer, resolver: .ask, configuration: .quick)
    try await use(store, as: #require(replicator))
    try await replicator?.signOut(.discard)
    replicator = nil
    #expect(try keys(store).isEmpty)
    #expect(try await store.pending().isEmpty)
    #expect(try await store.peers().isEmpty)
    try await store.close()
    store = try open()
    let next = isSameServer ? SwitchedPeer(sharing: peer) : try SwitchedPeer()
    try await expectNothingGoes(from: store, named: name, to: next)
    if isSameServer {
      #expect(try store.text("taken") == "A" && store.text("edited") == "A")
      #expect(try store.text("deleted") == "A" && store.text("removed") == nil)
    }
    _ = try await store.compact(dropHistory: true)
    let old = try store.history(ofKey: "film").filter { $0.value == Array("A".utf8) }
    #expect(old.isEmpty)
    try await store.close()
  }

  @Test(
    "after signing out of one server the next user's keys are his own at a back end of requests")
  func backEnd() async throws {
    let store = try open()
    let back = BackEnd()
    @Sendable func newPeer() -> RequestPeer {
      RequestPeer(
        named: "https://api.example.org", send: { try back.send($0) }, fetch: { back.fetch($0) })
    }
    var replicator = try store.replicator(named: "home", peer: newPeer())
    for number in 0..<5 { try await store.put("shared/\(number)", "A") }
    _ = try await replicator.syncOnce()
    try await store.put("shared/1", "A unsent")
    try await replicator.signOut(.discard)
    replicator = try store.replicator(named: "home", peer: newPeer())
    let sent = back.state.withLock { $0.requests.count }
    let report = try await replicator.syncOnce()
    #expect(report.isComplete && report.pushed == 0)
    #expect(back.state.withLock { $0.requests.count } == sent)
    #expect(try keys(store).count == 5 && store.text("shared/1") == "A")
  }

  /// Reasons for which not everything can be sent.
  enum Trouble: CaseIterable { case off, parked, undecided, readOnly, outOfScope }

  @Test(
    "a user who waits is not signed out while something is unsent, and nothing changes",
    arguments: Trouble.allCases)
  func waits(trouble: Trouble) async throws {
    let store = try open()
    var configuration = Replicator.Configuration.quick
    if trouble == .readOnly { configuration.direction = .pull }
    let replicator = try store.replicator(
      named: "home", peer: peer,
      scope: trouble == .outOfScope ? SyncScope(keyPrefixes: ["in/"]) : .everything,
      resolver: .ask, configuration: configuration)
    _ = try await replicator.syncOnce()
    switch trouble {
    case .off: peer.isOn = false
    case .parked: try await store.put("bad", "A")
    case .undecided:
      let other = try memoryStore()
      try await other.put("unsent", "theirs")
      _ = try await other.replicator(named: "home", peer: SwitchedPeer(sharing: peer)).syncOnce()
    case .readOnly, .outOfScope: break
    }
    try await store.put("unsent", "A")
    // What can be sent was sent before, as the time below may be too short for it.
    if trouble == .parked || trouble == .undecided { _ = try await replicator.syncOnce() }
    let before = try SyncWorld.state(store.engine)
    do {
      try await replicator.signOut(.send(until: .now + .milliseconds(200)))
      Issue.record("nothing was thrown")
    } catch {
      #expect(error.code == .unsentChanges)
      let unsent = error.cause as? UnsentChangesError
      #expect(unsent?.keys == (trouble == .parked ? ["bad"] : ["unsent"]))
      #expect(unsent?.entries == 1)
    }
    #expect(try SyncWorld.state(store.engine) == before)
    #expect(try await store.peers().count == 1)

    // It works on, and all goes once the reason has gone.
    switch trouble {
    case .off: peer.isOn = true
    case .parked: try await replicator.discard(#require(replicator.parked().first).sequence)
    case .undecided: try await replicator.decide("unsent", .local)
    case .readOnly: return
    case .outOfScope: try await replicator.setScope(.everything)
    }
    try await replicator.signOut(.send(until: .now + .seconds(600)))
    #expect(try keys(store).isEmpty)
    #expect(try peer.text("unsent") == "A")
  }

  @Test("a call that is under way brings nothing, and a replicator of before makes no more")
  func underWay() async throws {
    let store = try open()
    let former = try store.replicator(named: "home", peer: peer, configuration: .quick)
    former.start()
    try await store.put("sent", "A")
    await former.wait { $0.totals.applied == 1 }
    peer.set { $0.holdsPushes = true }
    let unsent = try await store.put("unsent", "A").sequences.lowerBound
    let receipt = former.receipt(forSequence: unsent)
    let outcome = Task { try await receipt.outcome() }
    try await peer.wait { $0.pushes.count == 2 }
    try await former.signOut(.discard)
    peer.set { $0.holdsPushes = false }
    if case .superseded = try await outcome.value {} else { Issue.record("the receipt waits on") }
    #expect(try keys(store).isEmpty)
    let next = SwitchedPeer(sharing: peer)
    // The former one is still there.
    let replicator = try store.replicator(named: "home", peer: next, configuration: .quick)
    let calls = peer.state.withLock { $0.calls }
    #expect(await code { try await former.syncOnce() } == .closed)
    #expect(await code { try await former.run() } == .closed)
    #expect(await code { try await former.signOut(.discard) } == .closed)
    #expect(peer.state.withLock { $0.calls } == calls)
    try await store.put("mine", "B")
    #expect(try await replicator.syncOnce().applied == 1)
    #expect(next.state.withLock { $0.pushes.flatMap(\.changes).map(\.name) } == ["mine"])
  }

  @Test("a run of the program's own ends with the sign-out", arguments: ["idle", "off", "polls"])
  func ownRun(kind: String) async throws {
    let store = try open()
    var configuration = Replicator.Configuration.quick
    configuration.longPoll = kind == "polls" ? .seconds(25) : .zero
    if kind == "idle" { configuration.pollInterval = .seconds(3600) }
    let replicator = try store.replicator(named: "home", peer: peer, configuration: configuration)
    if kind == "off" { peer.isOn = false }
    let run = Task { await code { try await replicator.run() } }
    await replicator.wait { status in
      switch status.phase {
      case .idle: true
      case .waiting: kind == "off"
      default: false
      }
    }
    try await replicator.signOut(.discard)
    #expect(await run.value == .closed)
  }

  @Test("entries of another peer's scope stay, and so does what is the device's")
  func others() async throws {
    let store = try open()
    let work = try store.replicator(
      named: "work", peer: SwitchedPeer(), scope: SyncScope(keyPrefixes: ["work/"]))
    let home = try store.replicator(
      named: "home", peer: peer, scope: SyncScope(keyPrefixes: ["home/"]))
    for key in ["work/1", "home/1", "device/1", "draft"] { try await store.put(Key(key), "A") }
    _ = try await home.syncOnce()
    _ = try await work.syncOnce()
    try await store.put("work/2", "A")
    try await home.signOut(.discard, keeping: SyncScope(keyPrefixes: ["device/"]))
    #expect(try keys(store) == ["work/1", "work/2", "device/1"])
    #expect(try await work.syncOnce().applied == 1)
    #expect(try await store.peers().map(\.name) == ["work"])

    let all = try store.replicator(named: "all", peer: SwitchedPeer())
    _ = try await all.syncOnce()
    #expect(await code { try await work.signOut(.discard) } == .invalidArgument)
    #expect(try keys(store) == ["work/1", "work/2", "device/1"])
  }
}
