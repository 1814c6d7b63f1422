import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSync
@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("A replicator with so many bytes a day", .timeLimit(.minutes(20)))
struct BudgetTests {
  private let time = VirtualTime()
  private let text = String(repeating: "a", count: 930)

  /// Entries of 1,000 bytes each.
  private func put(_ store: Store, _ count: Int, from first: Int = 10) async throws {
    for number in first..<(first + count) { try await store.put(Key("key \(number)"), text) }
  }

  @Test("a change that the day has no bytes for waits, says until when, and goes the next day")
  func nextDay() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    let replicator = try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(SyncBudget(bytesPerDay: 3000, counted: .sent)))
    replicator.start()
    let begin = time.clock.now()
    try await put(store, 8)
    await replicator.wait {
      if case .heldBack = $0.phase { $0.pending.entries == 5 } else { false }
    }
    #expect(peer.sentBytes == 3000)
    #expect(
      replicator.status.phase
        == .heldBack(
          .budget(until: Timestamp(milliseconds: begin.milliseconds + 86_400_000))))
    await time.advance(by: .seconds(86_399))
    await replicator.waitUntilHeldBack()
    #expect(peer.sentBytes == 3000)
    await time.advance(by: .seconds(901))
    await replicator.wait { $0.pending.entries == 2 && $0.phase != .pushing }
    #expect(peer.sentBytes == 6000)
    await time.advance(by: .seconds(86_401))
    await replicator.wait { $0.phase == .idle && $0.pending.isEmpty }
    #expect(peer.sentBytes == 8000)
    await replicator.stop()
  }

  @Test("a single round says in its report what it has held back")
  func once() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    let replicator = try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(SyncBudget(bytesPerDay: 2000, counted: .sent)))
    try await put(store, 3)
    let report = try await replicator.syncOnce()
    #expect(report.pushed == 2 && report.pending.entries == 1 && !report.isComplete)
    guard case .budget? = report.heldBack else {
      Issue.record("\(String(describing: report.heldBack))")
      return
    }
    let again = try await replicator.syncOnce(deadline: .now + .seconds(60))
    #expect(again.pushed == 0 && again.heldBack == report.heldBack)
    time.pass(.seconds(86_400))
    let last = try await replicator.syncOnce()
    #expect(last.pushed == 1 && last.isComplete && last.heldBack == nil)
  }

  @Test("the last batch of a day goes beyond it by one entry at most")
  func overshoot() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    let replicator = try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(SyncBudget(bytesPerDay: 2500)))
    try await put(store, 9)
    _ = try await replicator.syncOnce()
    #expect(peer.sentBytes == 3000)
  }

  @Test("a restart gives nothing back", arguments: [false, true])
  func restart(dies: Bool) async throws {
    let peer = try SwitchedPeer()
    let budget = SyncBudget(bytesPerDay: 3200, counted: .sent)
    var store = try time.store()
    try await put(store, 2)
    var replicator: Replicator? = try store.replicator(
      named: "home", peer: peer, configuration: time.configuration(budget))
    if dies {
      peer.set { $0.holdsPushes = true }
      replicator?.start()
      try await peer.wait { !$0.pushes.isEmpty }
      // The log's record of it while it is under way is what a killed program leaves.
      let record = try #require(
        try RecordTable(store.engine.reader).value(of: .peerStatus, key: Array("home".utf8)))
      let kept = try PeerStatus(decoding: record.rawSpan).budget
      #expect(kept.remaining(of: 3200) <= 1200 && kept.remaining(of: 3200) > 1000)
      peer.set { $0.holdsPushes = false }
      await replicator?.wait { $0.pending.isEmpty }
      await replicator?.stop()
    } else {
      #expect(try await replicator?.syncOnce().pushed == 2)
    }
    replicator = nil
    try await store.close()
    store = try time.store()
    try await put(store, 3, from: 50)
    let next = try store.replicator(
      named: "home", peer: peer, configuration: time.configuration(budget))
    let report = try await next.syncOnce()
    #expect(report.pushed == 2 && report.heldBack != nil)
    #expect(peer.sentBytes == 4000)
  }

  @Test("pages that are taken are counted, unless only what is sent is")
  func taken() async throws {
    for counted in [SyncBudget.Counted.both, .sent] {
      let (time, peer) = (VirtualTime(), try SwitchedPeer())
      try await peer.write(40, bytes: 930)
      let store = try time.store()
      let replicator = try store.replicator(
        named: "home", peer: peer,
        configuration: time.configuration(SyncBudget(bytesPerDay: 10_000, counted: counted)))
      let report = try await replicator.syncOnce()
      guard counted == .both else {
        #expect(report.pulled == 40 && report.isComplete)
        continue
      }
      #expect((9...11).contains(report.pulled) && report.heldBack != nil)
      time.pass(.seconds(86_400))
      let next = try await replicator.syncOnce()
      #expect((9...11).contains(next.pulled) && next.heldBack != nil)
    }
  }

  @Test("urgent entries go although the day's bytes are used up, and nothing else does")
  func urgent() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    let replicator = try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(
        SyncBudget(bytesPerDay: 1000, counted: .sent, urgentPriority: 2)))
    try await put(store, 3)
    #expect(try await replicator.syncOnce().pushed == 1)
    try await peer.write(1, bytes: 10)
    try await store.put("soon", "1", options: PutOptions(priority: 1))
    try await store.put("now", "1", options: PutOptions(priority: 2))
    let report = try await replicator.syncOnce()
    #expect(report.pushed == 1 && report.pulled == 0 && report.heldBack != nil)
    #expect(try peer.text("now") == "1" && peer.text("soon") == nil)
    time.pass(.seconds(86_400))
    _ = try await replicator.syncOnce()
    #expect(try peer.text("soon") == "1")
  }

  @Test("a batch that was under way goes first when something urgent waits behind it")
  func behindABatch() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    let replicator = try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(
        SyncBudget(bytesPerDay: 1000, counted: .sent, urgentPriority: 1)))
    _ = try await replicator.syncOnce()
    try await put(store, 1)
    // It was formed, arrived nowhere, and has used up the day.
    try await replicator.host.perform { state in
      _ = try state.session().startNextBatch()
      try state.charge(sent: 1000, replicator.configuration.budget)
    }
    #expect(try await replicator.syncOnce().pushed == 0)
    try await store.put("now", "1", options: PutOptions(priority: 1))
    let report = try await replicator.syncOnce()
    #expect(report.pushed == 2)
    #expect(try peer.text("now") == "1" && peer.text("key 10") == text)
  }

  @Test("without a byte a day nothing goes, and all of it when there is no budget any more")
  func none() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    try await put(store, 3)
    var replicator: Replicator? = try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(SyncBudget(bytesPerDay: 0)))
    #expect(try await replicator?.syncOnce().pushed == 0)
    replicator = nil
    replicator = try store.replicator(named: "home", peer: peer)
    #expect(try await replicator?.syncOnce().pushed == 3)
  }

  @Test("a clock that was far ahead and is set right makes nobody wait for longer than a day")
  func clockBack() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    let replicator = try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(SyncBudget(bytesPerDay: 1000, counted: .sent)))
    try await put(store, 2)
    replicator.start()
    await replicator.wait {
      if case .heldBack = $0.phase { $0.pending.entries == 1 } else { false }
    }
    time.clock.jump(by: .seconds(-100 * 86_400))
    await time.advance(by: .seconds(901))
    let now = time.clock.now().milliseconds
    await replicator.wait {
      if case .heldBack(.budget(let until)) = $0.phase {
        until.milliseconds - now <= 86_400_000
      } else {
        false
      }
    }
    await time.advance(by: .seconds(86_401))
    await replicator.wait { $0.pushed == 2 }
    await replicator.stop()
  }

  @Test("a peer that is forgotten takes what was used with it")
  func forgotten() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    try await put(store, 2)
    var replicator: Replicator? = try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(SyncBudget(bytesPerDay: 1000)))
    _ = try await replicator?.syncOnce()
    replicator = nil
    #expect(try RecordTable(store.engine.reader).has(.peerStatus))
    try await store.forget(peer: "home")
    #expect(try !RecordTable(store.engine.reader).has(.peerStatus))
  }

  @Test("a peer that never answers leaves nothing of its budget in the log")
  func neverAnswered() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    peer.isOn = false
    try await put(store, 2)
    let last = store.lastSequence
    var replicator: Replicator? = try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(SyncBudget(bytesPerDay: 1000)))
    #expect(await code { try await replicator?.syncOnce() } == .peerFailed)
    replicator = nil
    #expect(try store.lastSequence == last && !RecordTable(store.engine.reader).has(.peerStatus))
  }

  @Test("without a byte a day a replicator sleeps until it may be another one")
  func sleeps() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    let replicator = try store.replicator(
      named: "home", peer: peer, configuration: time.configuration(SyncBudget(bytesPerDay: 0)))
    try await put(store, 1)
    replicator.start()
    await replicator.waitUntilHeldBack()
    let until = Timestamp(milliseconds: time.clock.now().milliseconds + 86_400_000)
    #expect(replicator.status.phase == .heldBack(.budget(until: until)))
    await replicator.stop()
  }

  @Test("an urgent entry is found however much waits before it")
  func farBehind() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    let replicator = try store.replicator(
      named: "home", peer: peer,
      configuration: time.configuration(SyncBudget(bytesPerDay: 0, urgentPriority: 2)))
    for part in 0..<7 {
      try await store.write { batch in
        for number in 0..<10_000 { try batch.put(Key("key \(part) \(number)"), "") }
      }
    }
    try await store.put("now", "1", options: PutOptions(priority: 2))
    #expect(try await replicator.syncOnce().pushed == 1)
    #expect(try peer.text("now") == "1")
  }

  @Test("a resolver's answer to an urgent entry is as urgent")
  func merged() async throws {
    let (peer, store) = (try SwitchedPeer(), try time.store())
    let other = try memoryStore()
    try await other.put("k", "theirs")
    _ = try await other.replicator(named: "x", peer: HandlerPeer(peer.handler)).syncOnce()
    let replicator = try store.replicator(
      named: "home", peer: peer,
      resolver: ConflictResolver { _ in
        .merged(SyncContent(value: Array("both".utf8)))
      },
      configuration: time.configuration(
        SyncBudget(bytesPerDay: 0, counted: .sent, urgentPriority: 2)))
    try await store.put("k", "ours", options: PutOptions(priority: 2))
    _ = try await replicator.syncOnce()
    _ = try await replicator.syncOnce()
    #expect(try peer.text("k") == "both")
  }
}
