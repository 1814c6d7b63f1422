import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("A replicator", .timeLimit(.minutes(20)))
struct ReplicatorTests {
  @Test("one round sends everything and takes everything, a second one sends nothing")
  func once() async throws {
    let peer = try SwitchedPeer()
    let (a, b) = (try memoryStore(), try memoryStore())
    for number in 0..<100 { try await a.put("key \(number)", "value", labels: ["l"]) }
    try await b.put("other", "one")
    let first = try a.replicator(named: "home", peer: peer)
    #expect(try await first.pending.entries == 100)
    let report = try await first.syncOnce()
    #expect(report.pushed == 100 && report.applied == 100 && report.isComplete)
    #expect(report.pending.isEmpty && report.batches == 1)
    #expect(try await first.syncOnce().pushed == 0)
    let second = try b.replicator(named: "home", peer: peer)
    let taken = try await second.syncOnce()
    #expect(taken.pulled == 100 && taken.pushed == 1)
    #expect(try b.text("key 7") == "value")
    // Entries that came from the peer are not pending.
    #expect(try await b.pending(for: "home").isEmpty)
    #expect(try await second.syncOnce().pushed == 0)
    #expect(try peer.repeats() == 0)
  }

  @Test("a name is used once at a time")
  func names() throws {
    let store = try memoryStore()
    let peer = try SwitchedPeer()
    var one: Replicator? = try store.replicator(named: "home", peer: peer)
    // A refusal does not set the name free.
    for _ in 0..<2 {
      #expect(throws: TidemarkError.self) { try store.replicator(named: "home", peer: peer) }
    }
    _ = try store.replicator(named: "office", peer: peer)
    #expect(one?.name == "home")
    one = nil
    _ = try store.replicator(named: "home", peer: peer)
    #expect(throws: TidemarkError.self) { try store.replicator(named: "", peer: peer) }
  }

  @Test("while the server is off writes go on and are counted; then they go by themselves")
  func serverOff() async throws {
    let peer = try SwitchedPeer()
    peer.isOn = false
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    replicator.start()
    for number in 0..<500 {
      try await store.put("key \(number % 50)", "\(number)")
      if number % 100 == 99 { #expect(try await store.pending(for: "home").entries == 50) }
    }
    await replicator.wait { if case .waiting = $0.phase { true } else { false } }
    #expect(replicator.status.lastError?.kind == .unavailable)
    #expect(replicator.status.pending.entries == 50)
    peer.isOn = true
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty }
    #expect(try peer.text("key 49") == "499")
    #expect(replicator.status.lastError == nil)
    try await store.delete("key 49")
    // The peer tells it, whatever the status says meanwhile.
    while try peer.text("key 49") != nil { try await Task.sleep(for: .milliseconds(5)) }
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty }
    await replicator.stop()
    #expect(replicator.status.phase == .stopped)
  }

  @Test("a failed round is tried again without anybody writing, whatever kind of failure it is")
  func retries() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    try await store.put("key", "value")
    peer.set {
      $0.failures = [
        PeerError(.unavailable, "x"), PeerError(.busy, "x"), PeerError(.failed, "x"),
        PeerError(.malformed, "x"), PeerError(.unavailable, "y"),
      ]
    }
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    replicator.start()
    let outcome = try await replicator.receipt(forSequence: 1).outcome()
    #expect(outcome == .synced(try #require(position(outcome))))
    await replicator.stop()
    #expect(try peer.text("key") == "value")
  }

  private func position(_ outcome: SyncOutcome) -> FeedPosition? {
    if case .synced(let position) = outcome { return position }
    return nil
  }

  @Test(
    "an authorization that is refused pauses, whatever is written; a retry request ends the pause"
  )
  func unauthorized() async throws {
    let peer = try SwitchedPeer()
    peer.set { $0.failures = [PeerError(.unauthorized, "who?"), PeerError(.forbidden, "no")] }
    let store = try memoryStore()
    var configuration = Replicator.Configuration.quick
    configuration.longestRetry = .seconds(3600)
    let replicator = try store.replicator(named: "home", peer: peer, configuration: configuration)
    replicator.start()
    await replicator.wait { $0.phase == .paused(.unauthorized) }
    #expect(replicator.status.lastError?.message == "who?")
    try await store.put("key", "value")
    let calls = peer.state.withLock { $0.calls }
    try await Task.sleep(for: .milliseconds(30))
    #expect(peer.state.withLock { $0.calls } == calls)
    #expect(replicator.status.phase == .paused(.unauthorized))
    replicator.retryNow()
    await replicator.wait { $0.phase == .paused(.forbidden) }
    replicator.retryNow()
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty }
    await replicator.stop()
    #expect(try peer.text("key") == "value")
  }

  @Test("a local write does not wait for the end of a long poll")
  func longPoll() async throws {
    let peer = try SwitchedPeer()
    let (a, b) = (try memoryStore(), try memoryStore())
    var configuration = Replicator.Configuration.quick
    configuration.longPoll = .seconds(600)
    let first = try a.replicator(named: "home", peer: peer, configuration: configuration)
    let second = try b.replicator(named: "home", peer: peer, configuration: configuration)
    first.start()
    second.start()
    try await peer.wait { $0.waiting == 2 }
    let written = try await a.put("key", "value")
    let receipt = try #require(first.receipts(for: written).first)
    _ = try await receipt.outcome()
    // And what one sends wakes the other, which waits at the server.
    for try await change in b.changes(since: .beginning) {
      if change.entry?.key == "key" { break }
    }
    #expect(try b.text("key") == "value")
    await first.stop()
    await second.stop()
  }

  @Test("a long poll stays while what is written is not to be sent, and one that is ends it")
  func quietWrites() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    var configuration = Replicator.Configuration.quick
    configuration.longPoll = .seconds(600)
    let replicator = try store.replicator(
      named: "home", peer: peer, scope: SyncScope(keyPrefixes: ["in/"]),
      configuration: configuration)
    replicator.start()
    try await peer.wait { $0.waiting == 1 }
    let before = peer.state.withLock { ($0.polls, $0.calls) }
    for number in 0..<30 {
      try await store.put("out/\(number)", "value")
      try await store.put("in/cached", "\(number)", options: PutOptions(storageClass: .cache))
      // Its thread has looked at the writes.
      _ = try await replicator.pending
    }
    #expect(peer.state.withLock { ($0.polls, $0.calls) } == before)
    let written = try await store.put("in/key", "value")
    _ = try await #require(replicator.receipts(for: written).first).outcome()
    try await peer.wait { $0.waiting == 1 && $0.polls == before.0 + 1 }
    #expect(try peer.text("in/key") == "value")
    replicator.retryNow()
    try await peer.wait { $0.polls == before.0 + 2 }
    await replicator.stop()
  }

  @Test(
    "an edit made while its predecessor is under way arrives, and the receipts say what happened")
  func editInFlight() async throws {
    let peer = try SwitchedPeer()
    peer.set { $0.holdsPushes = true }
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    try await store.put("key", "one")
    replicator.start()
    try await peer.wait { $0.pushes.count == 1 }
    #expect(try await store.pending(for: "home").inFlight == 1)
    try await store.put("key", "two")
    #expect(try await store.pending(for: "home").entries == 1)
    #expect(try await replicator.receipt(forSequence: 1).current == nil)
    let sequence = store.lastSequence
    peer.set { $0.holdsPushes = false }
    guard case .synced = try await replicator.receipt(forSequence: 1).outcome(),
      case .synced = try await replicator.receipt(forSequence: sequence).outcome()
    else { return #expect(Bool(false), "not synced") }
    #expect(try peer.text("key") == "two")
    await replicator.stop()
    #expect(try await store.pending(for: "home").isEmpty)
  }

  @Test("a receipt that is cancelled stops the waiting only")
  func cancelledReceipt() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer)
    try await store.put("key", "one")
    try await store.put("key", "two")
    let receipt = replicator.receipt(forSequence: 2)
    let task = Task { try await receipt.outcome() }
    task.cancel()
    #expect(await code { try await task.value } == .cancelled)
    #expect(try await replicator.receipt(forSequence: 1).outcome() == .superseded(by: 2))
    _ = try await replicator.syncOnce()
    guard case .synced = try await receipt.outcome() else {
      return #expect(Bool(false), "not synced")
    }
  }

  @Test("stopping ends a call that is under way, and the next start finds out what became of it")
  func stopInFlight() async throws {
    let peer = try SwitchedPeer()
    peer.set { $0.losesAnswers = true }
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    try await store.put("key", "one")
    replicator.start()
    try await peer.wait { $0.pushes.count >= 1 }
    await replicator.stop()
    #expect(replicator.status.phase == .stopped)
    peer.set { $0.losesAnswers = false }
    replicator.start()
    _ = try await replicator.receipt(forSequence: 1).outcome()
    await replicator.stop()
    #expect(try peer.repeats() == 0)
    #expect(try peer.text("key") == "one")
  }

  @Test("cancelling the task that runs it ends the replicator, which can run again")
  func cancel() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    let task = Task { try await replicator.run() }
    await replicator.wait { $0.phase == .idle }
    await #expect(throws: TidemarkError.self) { try await replicator.run() }
    task.cancel()
    #expect(await code { try await task.value } == .cancelled)
    #expect(replicator.status.phase == .stopped)
    try await store.put("key", "value")
    #expect(try await replicator.syncOnce().pushed == 1)
  }

  @Test("one round beside a replicator that runs is done by that one")
  func onceBesideRun() async throws {
    let peer = try SwitchedPeer()
    let (a, b) = (try memoryStore(), try memoryStore())
    let first = try a.replicator(named: "home", peer: peer, configuration: .quick)
    first.start()
    try await b.put("key", "value")
    _ = try await b.replicator(named: "home", peer: peer).syncOnce()
    _ = try await first.syncOnce()
    #expect(try a.text("key") == "value")
    peer.isOn = false
    #expect(await code { try await first.syncOnce() } == .peerFailed)
    await first.stop()
  }

  @Test("a round with a deadline ends at it and says what is left and why")
  func deadline() async throws {
    let peer = try SwitchedPeer()
    peer.isOn = false
    let store = try memoryStore()
    try await store.put("key", "value")
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    var report = try await replicator.syncOnce(deadline: .now + .seconds(1))
    // A busy machine may not come to a call in so short a time.
    for _ in 0..<30 where report.lastError == nil {
      report = try await replicator.syncOnce(deadline: .now + .seconds(1))
    }
    #expect(!report.isComplete && report.pending.entries == 1)
    #expect(report.lastError?.message == "switched off")
    #expect(await code { try await replicator.syncOnce() } == .peerFailed)
  }

  @Test("closing the store ends the replicator")
  func closed() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    let task = Task { try await replicator.run() }
    await replicator.wait { $0.phase == .idle }
    try await store.close()
    let error = await #expect(throws: TidemarkError.self) { try await task.value }
    #expect(error?.code == .closed)
  }

  @Test("closing the store ends a replicator that waits for the user, or for long")
  func closedWhileWaiting() async throws {
    let failures = [
      PeerError(.unauthorized, "no"), PeerError(.busy, "later", retryAfter: .seconds(3000)),
    ]
    for failure in failures {
      let peer = try SwitchedPeer()
      peer.set { $0.failures = [failure] }
      let store = try memoryStore()
      var configuration = Replicator.Configuration.quick
      configuration.sleep = { try await Task.sleep(for: $0) }
      let replicator = try store.replicator(
        named: "home", peer: peer, configuration: configuration)
      let task = Task { try await replicator.run() }
      await replicator.wait { status in
        switch status.phase {
        case .paused, .waiting: true
        default: false
        }
      }
      try await store.close()
      let error = await #expect(throws: TidemarkError.self) { try await task.value }
      #expect(error?.code == .closed)
    }
  }

  @Test("a suspended store pauses the replicator, resuming it goes on")
  func suspended() async throws {
    let peer = try SwitchedPeer()
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer, configuration: .quick)
    replicator.start()
    await replicator.wait { $0.phase == .idle }
    try await store.suspend()
    await replicator.wait { $0.phase == .paused(.storeSuspended) }
    try await store.resume()
    try await store.put("key", "value")
    _ = try await replicator.receipt(forSequence: store.lastSequence).outcome()
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty }
    await replicator.stop()
    #expect(try peer.text("key") == "value")
  }

  @Test("a peer that goes round in circles is left alone for a while")
  func circles() async throws {
    let peer = StuckPeer()
    let store = try memoryStore()
    let replicator = try store.replicator(named: "home", peer: peer)
    #expect(await code { try await replicator.syncOnce() } == .peerFailed)
  }
}

/// Says that there is more, and never gives it.
private struct StuckPeer: Peer {
  var capabilities: PeerCapabilities { PeerCapabilities() }
  private let range = FeedRange(epochs: [FeedEpoch(epoch: 1, firstOffset: 1)], head: 5)

  func hello(_ request: HelloRequest) async throws -> HelloAnswer {
    HelloAnswer(feed: Device(7).id, range: range, mark: ReplicaMark(), time: 0)
  }
  func push(_ request: PushRequest) async throws -> PushAnswer {
    PushAnswer(mark: ReplicaMark(), range: range)
  }
  func pull(_ request: PullRequest) async throws -> PullAnswer {
    PullAnswer(entries: [], cursor: request.after, range: range, mark: ReplicaMark())
  }
  func values(_ request: ValuesRequest) async throws -> ValuesAnswer {
    throw PeerError(.failed, "no")
  }
  func digest(_ request: DigestRequest) async throws -> DigestAnswer {
    throw PeerError(.failed, "no")
  }
  func close() async {}
}
