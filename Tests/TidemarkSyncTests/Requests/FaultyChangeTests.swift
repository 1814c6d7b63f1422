import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("A back end that fails on single changes")
struct FaultyChangeTests {
  private struct Strange: Error {}

  private static let faults: [any Error] = [
    PeerError(.unavailable, "status 500"), PeerError(.failed, "status 500"),
    PeerError(.malformed, "no JSON"), Strange(), PeerError(.busy, "status 503"),
  ]

  private func device(
    _ back: BackEnd, failsOn bad: Set<Key>, _ fault: any Error, parallel: Int = 1
  ) throws -> RestDevice {
    back.state.withLock { $0.trouble = { if bad.contains($0.key) { throw fault } else { nil } } }
    return try RestDevice {
      RequestPeer(
        named: "x", options: RequestPeer.Options(parallel: parallel),
        send: { try back.send($0) }, fetch: { back.fetch($0) })
    }
  }

  @Test(
    "one round brings all of 64 changes but the bad ones",
    arguments: 0..<5, [1, 3])
  func oneRound(fault: Int, parallel: Int) async throws {
    for bad in [["k0"], ["k63"], ["k7", "k8", "k9", "k10", "k11"], ["k0", "k1"]] {
      let back = BackEnd()
      let device = try device(
        back, failsOn: Set(bad.map { Key($0) }), Self.faults[fault], parallel: parallel)
      for number in 0..<64 { try device.put("k\(number)", "1") }
      while try await device.step() {}
      for number in 0..<64 {
        let isThere = back.value("k\(number)") == "1"
        #expect(isThere != bad.contains("k\(number)"), "\(bad), \(number)")
      }
      // Each bad one is sent again at once, as it may have arrived; not so where the back end has
      // said that it is busy.
      let again = back.state.withLock { $0.requests.count } - 64
      #expect(fault == 4 ? again <= bad.count : again == bad.count, "\(again) of \(bad)")
      #expect(device.session.totals.parked == 0 && device.session.timeToRetry == .seconds(10))
      back.state.withLock { $0.trouble = nil }
      try await device.settle()
      #expect(bad.allSatisfy { back.value($0) == "1" } && device.session.isAtRest)
    }
  }

  @Test("a change that fails for ever is tried less and less, and others pass it", arguments: 0..<5)
  func forEver(fault: Int) async throws {
    let back = BackEnd()
    let device = try device(back, failsOn: ["bad"], Self.faults[fault])
    try device.put("bad", "1")
    var rests: [Duration] = []
    for number in 0..<12 {
      back.put("web\(number)", "1")
      try device.put("k\(number)", "1")
      device.session.disconnect()
      for _ in 0..<20 { _ = try await device.step() }
      #expect(try device.get("web\(number)") == "1" && back.value("k\(number)") == "1")
      let rest = try #require(device.session.timeToRetry)
      rests.append(rest)
      device.clock.advance(by: rest)
    }
    #expect(rests == rests.sorted() && rests[0] == .seconds(10) && rests[11] == .seconds(300))
    #expect(device.session.totals.parked == 0)
    // A change that is written in its place goes at once.
    back.state.withLock { $0.trouble = nil }
    try device.put("bad", "2")
    device.session.disconnect()
    while try await device.step() {}
    #expect(back.value("bad") == "2" && device.session.isAtRest)
  }

  @Test(
    "a change whose response was lost is sent again before the list is fetched",
    arguments: [1, 4])
  func sentAgainFirst(parallel: Int) async throws {
    for lost in [[2], [1, 2, 3, 4, 5, 6], [0]] {
      let calls = Lock<[String]>([])
      let lostOnes = Lock(Set(lost.map { "k\($0)" }))
      let device = try RestDevice {
        RequestPeer(
          named: "x", options: RequestPeer.Options(parallel: parallel),
          send: { change in
            calls.withLock { $0.append(change.key.text) }
            if lostOnes.withLock({ $0.remove(change.key.text) }) != nil { throw Strange() }
            return .applied
          },
          fetch: { token in
            calls.withLock { $0.append("list") }
            return RequestPage(changes: [], token: "t")
          })
      }
      while try await device.step() {}
      for number in 0..<8 { try device.put("k\(number)", "1") }
      calls.withLock { $0 = [] }
      try await device.settle()
      let made = calls.withLock { $0 }
      let (first, last) = (made.firstIndex { $0 != "list" }, made.lastIndex { $0 != "list" })
      let sends = try made[#require(first)...#require(last)]
      #expect(!sends.contains("list") && sends.count == 8 + lost.count, "\(made)")
    }
  }

  @Test("a new change goes before those that fail for ever", arguments: [1, 2, 3, 64])
  func goesFirst(perBatch: Int) async throws {
    let back = BackEnd()
    let sent = Lock<[String]>([])
    back.state.withLock {
      $0.trouble = { change in
        sent.withLock { $0.append(change.key.text) }
        if change.key.text.hasPrefix("bad") { throw Strange() }
        return nil
      }
    }
    let device = try RestDevice {
      RequestPeer(
        named: "x", options: RequestPeer.Options(changesPerBatch: perBatch),
        send: { try back.send($0) }, fetch: { back.fetch($0) })
    }
    for number in 0..<7 { try device.put("bad\(number)", "1") }
    for number in 0..<5 {
      for _ in 0..<8 {
        device.session.disconnect()
        while try await device.step() {}
      }
      // All of them may go again, and there is something new.
      device.clock.advance(by: .seconds(3_600))
      sent.withLock { $0 = [] }
      try device.put("k\(number)", "1")
      device.session.disconnect()
      while try await device.step() {}
      #expect(sent.withLock { $0.first } == "k\(number)" && sent.withLock { $0.count } > 1)
    }
    #expect(device.session.totals.parked == 0)
  }

  @Test("a back end that fails on everything is asked for three changes, and not for all")
  func server() async throws {
    let sent = Lock(0)
    let peer = RequestPeer(named: "x") { _ in
      sent.withLock { $0 += 1 }
      throw PeerError(.unavailable, "off")
    }
    var device = Device(1)
    _ = try await peer.hello(HelloRequest(replica: device.id))
    device.number = 1
    let batch = device.batch((0..<40).map { device.put("k\($0)", "1") })
    for round in 1...3 {
      await #expect(throws: PeerError(.unavailable, "off")) { try await peer.push(batch) }
      #expect(sent.withLock { $0 } == 3 * round)
    }
  }

  @Test(
    "an error that no other change can mend ends the batch at once",
    arguments: [PeerError.Kind.unauthorized, .forbidden])
  func ends(kind: PeerError.Kind) async throws {
    let sent = Lock(0)
    let peer = RequestPeer(named: "x") { _ in
      let count = sent.withLock { count in
        count += 1
        return count
      }
      guard count > 1 else { return .applied }
      throw PeerError(kind, "no")
    }
    var device = Device(1)
    _ = try await peer.hello(HelloRequest(replica: device.id))
    device.number = 1
    let batch = device.batch((0..<9).map { device.put("k\($0)", "1") })
    await #expect(throws: PeerError(kind, "no")) { try await peer.push(batch) }
    #expect(sent.withLock { $0 } == 2)
  }

  @Test("a change does not overtake an earlier one of its key", arguments: [1, 2, 5])
  func keepsOrder(parallel: Int) async throws {
    let sent = Lock<[UInt64]>([])
    let peer = RequestPeer(named: "x", options: RequestPeer.Options(parallel: parallel)) { change in
      sent.withLock { $0.append(change.operation.sequence) }
      if change.operation.sequence == 1 { throw PeerError(.unavailable, "off") }
      return .applied
    }
    var device = Device(1)
    _ = try await peer.hello(HelloRequest(replica: device.id))
    device.number = 1
    let changes = [device.put("a", "1"), device.put("b", "1"), device.put("a", "2")]
    let answer = try await peer.push(device.batch(changes))
    #expect(sent.withLock { $0.sorted() } == [1, 1, 2] && answer.later == [0: .seconds(10)])
    #expect(answer.mark.verdicts.map(\.name) == ["aborted", "applied", "aborted"])
  }

  @Test("a batch that was formed for larger batches goes all the same", arguments: [1, 3, 63])
  func lowered(most: Int) async throws {
    let back = BackEnd()
    let most = Lock(most)
    let isOff = Lock(true)
    let device = try RestDevice {
      RequestPeer(
        named: "x",
        options: RequestPeer.Options(
          changesPerBatch: isOff.withLock { $0 } ? 64 : most.withLock { $0 }),
        send: { change in
          if isOff.withLock({ $0 }) { throw PeerError(.busy, "off") }
          return try back.send(change)
        }, fetch: { back.fetch($0) })
    }
    for number in 0..<64 { try device.put("k\(number)", "1") }
    while device.session.batchInFlight == nil { _ = try await device.step() }
    isOff.withLock { $0 = false }
    try device.restart()
    try await device.settle()
    #expect(back.state.withLock { $0.log.count } == 64 && device.session.totals.parked == 0)
  }
}
