import Testing
import Tidemark
import TidemarkEngine
import TidemarkSyncTestKit
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("A back end that takes one request for each change", .timeLimit(.minutes(20)))
struct RequestPeerTests {
  @Test("changes go there, those of others come, and at rest nothing is asked")
  func bothWays() async throws {
    let back = BackEnd()
    let device = try RestDevice(back)
    for number in 0..<10 { try device.put("k\(number)", "1") }
    for number in 0..<5 { back.put("web\(number)", "2") }
    try await device.settle()
    try device.delete("k3")
    try device.put("k4", "2")
    try await device.settle()
    #expect(back.value("k0") == "1" && back.value("k3") == nil && back.value("k4") == "2")
    #expect(try device.get("web4") == "2")
    let sent = back.state.withLock { $0.requests }
    #expect(sent.count == 12 && Set(sent).count == 12)
    // Its own changes come back and are known.
    #expect(device.session.totals.pulled == 5)
    #expect(device.session.isAtRest)
    #expect(try device.session.next() == nil)
  }

  @Test("a batch under way when the program died is sent again with the same keys")
  func crash() async throws {
    let back = BackEnd()
    let device = try RestDevice(back, canFetch: false)
    for number in 0..<10 { try device.put("k\(number)", "1") }
    // Batches of four: the second one arrives, and nobody hears the answer.
    while back.state.withLock({ $0.requests.count }) < 4 { _ = try await device.step() }
    while back.state.withLock({ $0.requests.count }) < 8 {
      _ = try await device.step(toPush: back.state.withLock { $0.requests.count } == 4)
    }
    let before = back.state.withLock { $0.requests }
    try device.restart()
    try await device.settle()
    let after = back.state.withLock { $0.requests }
    #expect(Array(after[8..<12]) == Array(before[4..<8]))
    #expect(after.count == 14 && Set(after).count == 10)
    #expect(back.state.withLock { $0.log.count } == 10, "a change counts twice")
    #expect(device.session.isAtRest)
  }

  @Test(
    "whenever the program dies, every change arrives and counts once",
    arguments: 1...12 as ClosedRange<UInt64>)
  func anyCrash(seed: UInt64) async throws {
    var generator = SeededGenerator(seed: seed)
    let back = BackEnd()
    let device = try RestDevice(back, seed: seed)
    var expected: [String: String] = [:]
    for round in 0..<60 {
      let key = "k\(generator.int(below: 12))"
      expected[key] = "\(round)"
      try device.put(key, "\(round)")
      for _ in 0..<generator.int(below: 6) {
        _ = try await device.step(losesAnswer: generator.chance(0.2))
      }
      if generator.chance(0.15) { try device.restart() }
      if generator.chance(0.1) {
        back.state.withLock { $0.trouble = { _ in throw PeerError(.unavailable, "off") } }
        _ = try await device.step()
        back.state.withLock { $0.trouble = nil }
      }
    }
    try await device.settle()
    for (key, value) in expected {
      #expect(back.value(key) == value, "seed \(seed), \(key)")
      #expect(try device.get(key) == value, "seed \(seed), \(key)")
    }
    let taken = back.state.withLock { $0.log.map(\.idempotencyKey) }
    #expect(Set(taken).count == taken.count, "seed \(seed)")
    #expect(device.session.isAtRest, "seed \(seed)")
  }

  @Test("after a restart fetching goes on from the token, not from the beginning")
  func token() async throws {
    let back = BackEnd()
    let device = try RestDevice(back)
    for number in 0..<7 { back.put("web\(number)", "1") }
    try await device.settle()
    back.state.withLock { $0.fetches = [] }
    try device.restart()
    back.put("new", "1")
    try await device.settle()
    #expect(back.state.withLock { $0.fetches.first } == "7")
    #expect(try device.get("new") == "1")
    #expect(device.session.totals.pulled == 1)
  }

  @Test(
    "a conflict is resolved, and the winner is sent under a key of its own",
    arguments: [false, true])
  func conflict(restarts: Bool) async throws {
    let back = BackEnd()
    back.put("k", "theirs")
    back.state.withLock { $0.contested = ["k"] }
    let device = try RestDevice(back)
    try device.put("k", "mine")
    if restarts {
      // Until the conflict is known and what stands there is not.
      while device.session.totals.conflicts == 0 { _ = try await device.step() }
      try device.restart()
    }
    try await device.settle()
    #expect(back.value("k") == "mine")
    let keys = back.state.withLock { $0.requests }
    #expect(Set(keys).count == keys.count && keys.contains { isSalted($0) })
  }

  @Test("when theirs wins, it is what the store holds then")
  func remoteWins() async throws {
    let back = BackEnd()
    let device = try RestDevice(back, resolver: .remoteWins)
    try await device.settle()
    try device.put("k", "mine")
    back.state.withLock { $0.contested = ["k"] }
    // Not in the log: only the answer to the change tells of it.
    back.state.withLock { $0.items["k"] = .value(SyncContent(value: [0x32])) }
    try await device.settle()
    #expect(try device.get("k") == "2")
    #expect(back.value("k") == "2" && device.session.isAtRest)
  }

  @Test("without a way to read, a conflict is parked")
  func parkedConflict() async throws {
    let back = BackEnd()
    back.state.withLock { $0.contested = ["k"] }
    let device = try RestDevice(back, canFetch: false)
    try device.put("k", "mine")
    try device.put("l", "mine")
    try await device.settle()
    #expect(device.session.totals.parked == 1 && back.value("l") == "mine")
  }

  @Test("a change whose conflict nobody can tell any more is parked, and the others go on")
  func forgottenConflict() async throws {
    let back = BackEnd()
    back.put("k", "theirs")
    back.state.withLock { $0.contested = ["k"] }
    let device = try RestDevice(back, canFetch: false)
    try device.put("k", "mine")
    while device.session.totals.conflicts == 0 { _ = try await device.step() }
    try device.restart()
    try device.put("l", "mine")
    var failures = 0
    device.session.disconnect()
    for _ in 0..<200 {
      guard let call = try device.session.next() else { break }
      do { try device.session.receive(try await device.peer.answer(to: call)) } catch let error
        as PeerError
      {
        failures += 1
        try device.session.failed(error)
      }
    }
    #expect(failures == 8 && back.value("l") == "mine" && device.session.isAtRest)
    let waiting = try device.session.waitingForUser()
    #expect(waiting.map(\.change.key) == [Array("k".utf8)])
    _ = try device.session.retry([try #require(waiting.first).change.sequence])
    try await device.settle()
    #expect(back.value("k") == "mine" || device.session.totals.conflicts == 2)
  }

  @Test("a state that a conflict told is told again to a store that could not take it")
  func toldAgain() async throws {
    let back = BackEnd()
    back.put("k", "theirs")
    back.state.withLock { $0.contested = ["k"] }
    let device = try RestDevice(back, resolver: .remoteWins, canFetch: false)
    try device.put("k", "mine")
    while let call = try device.session.next() {
      let answer = try await device.peer.answer(to: call)
      if call.kind == .valuesRequest { break }
      try device.session.receive(answer)
    }
    try await device.settle()
    #expect(try device.get("k") == "theirs" && device.session.isAtRest)
  }

  @Test("closures speak of keys as the store does, and of the time of the commit")
  func terms() async throws {
    let sent = Lock<[RequestChange]>([])
    let read = Lock<[Key]>([])
    let peer = RequestPeer(named: "x") { change in
      sent.withLock { $0.append(change) }
      return change.key.hasPrefix("note/") ? .conflict(nil) : .applied
    } fetch: { _ in
      let row = "web/" + "1"
      return RequestPage(
        changes: [RequestPage.Change(key: row, state: .value(SyncContent(value: [0x32])))],
        token: "1")
    } read: { key, _ in
      read.withLock { $0.append(key) }
      return .value(SyncContent(value: [0x33]))
    }
    let device = try RestDevice(resolver: .remoteWins) { peer }
    try device.put("a", "1")
    try device.put("note/1", "1")
    let committed = try ReplicationLog(device.engine).newestChange(ofKey: Array("a".utf8))?
      .commitTime
    try await device.settle()
    #expect(try device.get("web/1") == "2" && device.get("note/1") == "3")
    let changes = sent.withLock { $0 }
    #expect(changes.map(\.key) == ["a", "note/1"] && read.withLock { $0 } == ["note/1"])
    #expect(changes[0].commitTime == HybridTime(committed ?? 0).orderedTimestamp)
    #expect(changes[0].commitTime < changes[1].commitTime)
  }

  @Test("a rejected change is parked, and the others go on")
  func rejected() async throws {
    let back = BackEnd()
    back.state.withLock {
      $0.trouble = { change in
        change.key == "bad"
          ? .rejected(SyncRejection(code: "invalid", message: "no")) : nil
      }
    }
    let device = try RestDevice(back)
    for key in ["a", "bad", "b"] { try device.put(key, "1") }
    try await device.settle()
    #expect(device.session.totals.parked == 1 && back.value("a") == "1" && back.value("b") == "1")
    try device.put("bad", "2")
    back.state.withLock { $0.trouble = nil }
    try await device.settle()
    #expect(back.value("bad") == "2")
  }

  @Test("a change that is to come later lets others pass, and comes later")
  func later() async throws {
    let back = BackEnd()
    back.state.withLock {
      $0.trouble = { $0.key == "slow" ? .retryLater(after: .seconds(3600)) : nil }
    }
    let device = try RestDevice(back)
    for key in ["a", "slow", "b"] { try device.put(key, "1") }
    for _ in 0..<40 { _ = try await device.step() }
    #expect(back.value("a") == "1" && back.value("b") == "1" && back.value("slow") == nil)
    let asked = back.state.withLock { $0.requests.count }
    // A later change passes, too; the slow one rests.
    try device.put("c", "1")
    for _ in 0..<40 { _ = try await device.step() }
    #expect(back.value("c") == "1")
    #expect(back.state.withLock { $0.requests.count } == asked + 1)
    back.state.withLock { $0.trouble = nil }
    // How long it is to rest is forgotten then.
    try device.restart()
    for _ in 0..<40 { _ = try await device.step() }
    #expect(back.value("slow") == "1")
  }

  @Test("changes that are all to come later hold up neither the list nor others")
  func allLater() async throws {
    let back = BackEnd()
    back.state.withLock {
      $0.trouble = { $0.key == "new" ? nil : .retryLater(after: .seconds(86_400 * 2)) }
    }
    let device = try RestDevice(back)
    for number in 0..<3 { try device.put("k\(number)", "1") }
    while try await device.step() {}
    back.put("web", "2")
    try device.put("new", "1")
    device.session.disconnect()
    while try await device.step() {}
    #expect(try device.get("web") == "2" && back.value("new") == "1")
    #expect(back.state.withLock { $0.requests.count } == 4)
    #expect(device.session.timeToRetry == .seconds(86_400), "a day at most")
    back.state.withLock { $0.trouble = nil }
    try await device.settle()
    #expect(back.value("k2") == "1")
  }

  @Test("a batch that failed half-way goes on where it stopped")
  func resume() async throws {
    let sent = Lock<[UInt64]>([])
    let peer = RequestPeer(named: "x") { change in
      let count = sent.withLock { sent in
        sent.append(change.operation.sequence)
        return sent.count
      }
      if count == 3 { throw PeerError(.unauthorized, "off") }
      return .applied
    }
    var device = Device(1)
    _ = try await peer.hello(HelloRequest(replica: device.id))
    device.number = 1
    let batch = device.batch((0..<5).map { device.put("k\($0)", "1") })
    await #expect(throws: PeerError.self) { try await peer.push(batch) }
    let mark = try await peer.push(batch).mark
    #expect(sent.withLock { $0 } == [1, 2, 3, 3, 4, 5])
    #expect(mark.verdicts.map(\.name) == Array(repeating: "applied", count: 5))
    #expect(try await peer.push(batch).mark == mark)
  }

  @Test("several changes at a time are bounded, and cancelling ends them")
  func parallel() async throws {
    let running = Lock((now: 0, most: 0))
    let peer = RequestPeer(named: "x", options: RequestPeer.Options(parallel: 3)) { change in
      running.withLock {
        $0.now += 1
        $0.most = max($0.most, $0.now)
      }
      defer { running.withLock { $0.now -= 1 } }
      if change.key == "z" { try await Task.sleep(for: .seconds(3_600)) }
      // The first ones wait for each other, however late the others come.
      while running.withLock({ $0.most }) < 3 { await Task.yield() }
      for _ in 0..<50 { await Task.yield() }
      return .applied
    }
    var device = Device(1)
    _ = try await peer.hello(HelloRequest(replica: device.id))
    device.number = 1
    let batch = device.batch((0..<10).map { device.put("k\($0)", "1") })
    _ = try await peer.push(batch)
    #expect(running.withLock { $0.most } == 3)
    device.number = 2
    let endless = device.batch([device.put("z", "1")])
    let task = Task { try await peer.push(endless) }
    while running.withLock({ $0.now }) == 0 { await Task.yield() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
  }

  @Test("own changes that come back without their key are known while the program runs")
  func echo() async throws {
    let back = BackEnd()
    back.state.withLock { $0.tellsKeys = false }
    let device = try RestDevice(back)
    try device.put("k", "1")
    try await device.settle()
    #expect(device.session.totals.pulled == 0)
    back.put("k", "2")
    back.put("k", "1")
    try await device.settle()
    #expect(try device.get("k") == "1" && device.session.totals.pulled > 0)
  }

  @Test("it conforms where no numbers are needed", arguments: PeerConformance.checks)
  func conforms(check: PeerConformance.Check) async throws {
    let back = BackEnd()
    try await check.run(
      upon: RequestPeer(named: "x", send: { try back.send($0) }, fetch: { back.fetch($0) }),
      patience: .seconds(1_200))
  }
}
