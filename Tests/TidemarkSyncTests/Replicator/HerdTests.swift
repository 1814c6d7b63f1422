import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

/// Many clients that a server fails at the same instant must not be back at the same instant.
@Suite("Replicators of many clients", .timeLimit(.minutes(20)))
struct HerdTests {
  private let time = SharedTime()
  private static let clients = 1000

  struct Outage: CustomTestStringConvertible {
    var name: String
    var failure: PeerError
    var firstRetry = Duration.seconds(1)
    /// From when to when clients are back, in seconds after the failure.
    var from = 0.0
    var length: Double
    var writes = false
    var testDescription: String { name }
  }

  static let outages = [
    Outage(
      name: "a server that is off, pauses of 30 s", failure: PeerError(.unavailable, "off"),
      firstRetry: .seconds(30), length: 30),
    Outage(
      name: "a server that is off, clients that write", failure: PeerError(.unavailable, "off"),
      firstRetry: .seconds(30), length: 30, writes: true),
    Outage(
      name: "a back end that fails, pauses of 240 s", failure: PeerError(.failed, "500"),
      firstRetry: .seconds(240), length: 240, writes: true),
    Outage(
      name: "Retry-After: 30", failure: PeerError(.busy, "x", retryAfter: .seconds(30)),
      from: 30, length: 30),
    Outage(
      name: "Retry-After: 7, clients that write",
      failure: PeerError(.unavailable, "x", retryAfter: .seconds(7)), from: 7, length: 7,
      writes: true),
    Outage(
      name: "Retry-After: 1800", failure: PeerError(.busy, "x", retryAfter: .seconds(1800)),
      from: 1800, length: 1800),
    Outage(
      name: "Retry-After of a day", failure: PeerError(.busy, "x", retryAfter: .seconds(86_400)),
      from: 86_400, length: 3600),
  ]

  @Test("no thirtieth of a pause brings back more than 6 % of 1,000 clients", arguments: outages)
  func spread(outage: Outage) async throws {
    var (peers, stores, replicators): ([ScriptedPeer], [Store], [Replicator]) = ([], [], [])
    for number in 0..<Self.clients {
      peers.append(ScriptedPeer(time))
      stores.append(try time.store(seed: UInt64(number)))
      replicators.append(
        try stores[number].replicator(
          named: "home", peer: peers[number],
          configuration: time.configuration(firstRetry: outage.firstRetry)))
      replicators[number].start()
    }
    // All have been answered once, and ask again at the same time.
    await time.waitForSleepers(Self.clients)
    let start = time.seconds + 60
    for peer in peers { peer.fail(outage.failure) }
    let end = start + outage.from + outage.length
    var writer = 0
    while time.seconds < end, !Task.isCancelled {
      await time.step(sleepers: Self.clients)
      await time.waitForSleepers(Self.clients)
      if outage.writes, time.seconds >= start {
        writer = (writer + 1) % Self.clients
        try await stores[writer].put("key", "value")
      }
    }
    for replicator in replicators { await replicator.stop() }
    var parts = [Int](repeating: 0, count: 30)
    for peer in peers {
      let calls = peer.hellos.filter { $0 >= start }
      #expect(calls.first == start)
      let back = (try #require(calls.dropFirst().first) - start - outage.from) / outage.length
      try #require((0...1.000_001).contains(back), "back \(back) of the pause")
      parts[min(29, Int(back * 30))] += 1
    }
    #expect(parts.max() ?? .max <= Self.clients * 6 / 100, "\(parts)")
  }
}

/// One client, over days.
@Suite("A replicator's patience", .timeLimit(.minutes(20)))
struct PatienceTests {
  private let time = SharedTime()
  private let files = MemoryFileSystem()
  private static let day = 86_400.0

  /// A replicator that has been answered, and sleeps.
  private func begin(_ peer: ScriptedPeer) async throws -> (Store, Replicator) {
    let store = try time.store(seed: 1, files: files, usesThreads: true)
    let replicator = try store.replicator(
      named: "home", peer: peer, configuration: time.configuration())
    replicator.start()
    await time.waitForSleepers(1)
    return (store, replicator)
  }

  private func end(_ client: (Store, Replicator)) async throws {
    await client.1.stop()
    try await client.0.close()
  }

  private func run(until end: Double) async {
    while time.seconds < end { await time.step(sleepers: 1) }
    await time.waitForSleepers(1)
  }

  @Test("the time that a peer has asked for outlives restarts", arguments: [5, 90, 7200, 86_400])
  func restarts(seconds: Int) async throws {
    let peer = ScriptedPeer(time)
    var client = try await begin(peer)
    peer.fail(PeerError(.busy, "later", retryAfter: .seconds(seconds)))
    await time.step(sleepers: 1)
    await client.1.wait { if case .waiting = $0.phase { true } else { false } }
    await time.waitForSleepers(1)
    let asked = time.seconds
    #expect(peer.hellos.last == asked)
    peer.fail(nil)
    for _ in 0..<3 {
      try await end(client)
      client = try await begin(peer)
      client.1.retryNow()
      #expect(peer.hellos.last == asked)
      // Nor does a single round ask.
      await client.1.stop()
      let error = await #expect(throws: TidemarkError.self) { try await client.1.syncOnce() }
      #expect(error?.peerError?.kind == .busy && error?.peerError?.retryAfter ?? .zero > .zero)
      #expect(peer.hellos.last == asked)
    }
    client.1.start()
    await run(until: asked + 2 * Double(seconds) + 1)
    let back = try #require(peer.hellos.first { $0 > asked })
    #expect(back >= asked + Double(seconds) && back <= asked + 2 * Double(seconds))
    try await end(client)
  }

  @Test(
    "a clock that was set makes nobody wait longer than a peer may ask for",
    arguments: [-400 * day, -day, -3600, 3600, 400 * day])
  func clockSet(seconds: Double) async throws {
    let peer = ScriptedPeer(time)
    let client = try await begin(peer)
    peer.fail(PeerError(.busy, "later", retryAfter: .seconds(80_000)))
    await time.step(sleepers: 1)
    await client.1.wait { if case .waiting = $0.phase { true } else { false } }
    await time.waitForSleepers(1)
    try await end(client)
    peer.fail(nil)
    let restart = time.seconds
    time.clock.jump(by: .seconds(seconds))
    let second = try await begin(peer)
    await run(until: restart + 2 * Self.day)
    let back = try #require(peer.hellos.first { $0 > restart || seconds > 90_000 })
    #expect(back <= restart + Self.day + 3600)
    try await end(second)
  }

  @Test(
    "a refused authorization is tried again, seldom, whatever is written meanwhile",
    arguments: [PeerError.Kind.unauthorized, .forbidden])
  func refused(kind: PeerError.Kind) async throws {
    let peer = ScriptedPeer(time)
    let client = try await begin(peer)
    peer.fail(PeerError(kind, "no"))
    let paused = SyncStatus.Phase.paused(kind == .forbidden ? .forbidden : .unauthorized)
    // A call of before may still be under way.
    while client.1.status.phase != paused {
      await time.step(sleepers: 1)
      await time.waitForSleepers(1)
    }
    let start = time.seconds
    for number in 0..<5 {
      try await client.0.put("key", "\(number)")
      await time.step(sleepers: 1)
      await time.waitForSleepers(1)
      #expect(client.1.status.phase == paused)
    }
    let calls = peer.hellos.filter { $0 >= start }
    let gaps = zip(calls.dropFirst(), calls).map { $0 - $1 }
    #expect(gaps.count == 5 && gaps.allSatisfy { (300...600).contains($0) }, "\(gaps)")
    // Somebody has signed in, and need not wait.
    peer.fail(nil)
    let now = time.seconds
    client.1.retryNow()
    // The peer says hello again, if it takes nothing.
    await client.1.wait { $0.lastError?.kind == .unavailable }
    #expect(time.seconds == now)
    try await end(client)
  }

  @Test("a peer whose waiting pulls fail at once is asked less and less often")
  func failingPolls() async throws {
    let peer = ScriptedPeer(time, canWait: true)
    peer.state.withLock { $0.pollFailure = PeerError(.busy, "too many wait") }
    let client = try await begin(peer)
    await run(until: 3600)
    #expect(peer.hellos.count < 60 && peer.hellos.last ?? 0 > 3000, "\(peer.hellos.count)")
    // Once polls have worked for a while, a failure is the first one again.
    peer.state.withLock { $0.pollFailure = nil }
    await run(until: time.seconds + 400)
    peer.fail(PeerError(.unavailable, "off"))
    let count = peer.hellos.count
    while peer.hellos.count < count + 2 { await time.step(sleepers: 1) }
    #expect(peer.hellos[count + 1] - peer.hellos[count] <= 2)
    try await end(client)
  }
}
