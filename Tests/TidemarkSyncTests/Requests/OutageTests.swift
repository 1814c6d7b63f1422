import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("A back end of requests that is away, and a program that is started again")
struct OutageTests {
  @Test(
    "a restart of the program is not taken for a back end that was restored",
    arguments: [SyncDirection.push, .both], [1, 2, 3] as [UInt64])
  func restarts(direction: SyncDirection, seed: UInt64) async throws {
    let back = BackEnd()
    let device = try RestDevice(back, seed: seed)
    let replica = device.session.replica
    for number in 0..<12 {
      try device.put("k\(number)", "1")
      device.session.disconnect()
      var hasPushed = false
      while let call = try device.session.next(direction) {
        // The list that would come after the push fails.
        if hasPushed, call.kind == .pullRequest { break }
        hasPushed = hasPushed || call.kind == .pushRequest
        try device.session.receive(try await device.peer.answer(to: call))
      }
      try device.restart()
    }
    #expect(device.session.replica == replica)
    let requests = back.state.withLock { $0.requests }
    #expect(requests.count == 12 && Set(requests).count == 12)
  }

  @Test(
    "an outage shows in the status, and a retry request sends what rests once it is over",
    arguments: [PeerError.Kind.unavailable, .busy, .failed])
  func poke(kind: PeerError.Kind) async throws {
    let back = BackEnd()
    back.state.withLock { $0.trouble = { _ in throw PeerError(kind, "off") } }
    // Time stands still, so that nothing but retry requests ends rests and pauses.
    let time = VirtualTime()
    let store = try time.store()
    var configuration = Replicator.Configuration(firstRetry: .zero, longestRetry: .zero)
    configuration.sleep = { _ in try await Task.sleep(for: .seconds(86_400)) }
    let replicator = try store.replicator(
      named: "rest",
      peer: RequestPeer(named: "x", send: { try back.send($0) }, fetch: { back.fetch($0) }),
      configuration: configuration)
    try await store.put("k", "1")
    replicator.start()
    await replicator.wait { $0.lastError != nil }
    for _ in 0..<3 {
      // The failure stays to be seen while the change rests.
      let count = replicator.rounds.count
      replicator.retryNow()
      await replicator.rounds.wait(beyond: count)
      #expect(replicator.status.lastError?.message == "off")
    }
    back.state.withLock { $0.trouble = nil }
    while back.value("k") == nil {
      let count = replicator.rounds.count
      replicator.retryNow()
      await replicator.rounds.wait(beyond: count)
    }
    await replicator.wait { $0.pending.isEmpty && $0.lastError == nil }
    await replicator.stop()
  }

  @Test("one sync with a deadline waits for what is to come later", arguments: [1, 3, 5])
  func later(times: Int) async throws {
    let back = BackEnd()
    let left = Lock(times)
    back.state.withLock { state in
      state.trouble = { change in
        guard change.key == "later" else { return nil }
        let isLater = left.withLock { left in
          left -= 1
          return left >= 0
        }
        return isLater ? .retryLater(after: .zero) : nil
      }
    }
    let store = try memoryStore()
    try await store.put("later", "1")
    try await store.put("other", "1")
    let replicator = try store.replicator(
      named: "rest", peer: RequestPeer(named: "x", send: { try back.send($0) }))
    let report = try await replicator.syncOnce(deadline: .now + .seconds(1200))
    #expect(report.isComplete && report.pending.isEmpty)
    #expect(back.value("later") == "1" && back.value("other") == "1")
  }

  @Test(
    "clients that are told the same time come back one after the other", arguments: [5, 30, 900])
  func spread(seconds: Int64) async throws {
    var rests: Set<Duration> = []
    for number in 1...40 {
      let peer = RequestPeer(named: "x") { _ in .retryLater(after: .seconds(seconds)) }
      var device = Device(UInt8(number))
      _ = try await peer.hello(HelloRequest(replica: device.id))
      device.number = 1
      let answer = try await peer.push(device.batch([device.put("k", "1")]))
      rests.insert(try #require(answer.later[0]))
    }
    #expect(rests.allSatisfy { (.seconds(seconds)..<(.seconds(2 * seconds))).contains($0) })
    // No tenth of the time has more than a quarter of them.
    let tenths = Dictionary(grouping: rests) { ($0 - .seconds(seconds)) / .seconds(seconds) * 10 }
    let counts = Dictionary(grouping: tenths.keys) { Int($0) }.mapValues(\.count)
    #expect(rests.count > 30 && counts.values.allSatisfy { $0 <= 10 }, "\(counts)")
  }

  @Test("a peer's status is read as it was written", arguments: ["", "https://a", "notes"])
  func keptStatus(target: String) throws {
    var status = PeerStatus()
    (status.target, status.head, status.lastSuccess) = (target, 7, 8)
    status.scope = SyncScope(labels: ["a"], keyPrefixes: ["b/"])
    status.retryAfterEnds = 99
    status.budget.charge(5, at: 6)
    let saved = try status.encoded()
    #expect(try PeerStatus(decoding: saved.rawSpan) == status)
  }
}
