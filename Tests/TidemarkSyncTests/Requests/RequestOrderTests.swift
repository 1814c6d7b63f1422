import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkREST
@testable import TidemarkSync
@testable import TidemarkSyncProtocol

/// The order holds at a back end of requests, which judges each change by itself.
@Suite("Changes that come after others at a back end of requests", .timeLimit(.minutes(20)))
struct RequestOrderTests {
  /// The answer to the change that others come after, at first.
  enum Trouble: CaseIterable {
    case conflict, notFound, unprocessable, tooManyRequests, fails
  }

  @Test(
    "nothing arrives before what it comes after, whatever is answered to that",
    arguments: Trouble.allCases, [1, 4])
  func order(trouble: Trouble, parallel: Int) async throws {
    let back = BackEnd()
    let device = try device(back, parallel: parallel)
    back.state.withLock { state in
      state.items["parent"] = .value(SyncContent(value: [1]))
      state.trouble = { change in
        guard change.key == "parent" else { return nil }
        switch trouble {
        case .conflict: return .conflict(.value(SyncContent(value: [1])))
        case .notFound: return .rejected(SyncRejection(code: "gone", message: "404"))
        case .unprocessable: return .rejected(SyncRejection(code: "invalid", message: "422"))
        case .tooManyRequests: return .retryLater(after: .milliseconds(1))
        case .fails: throw PeerError(.failed, "409")
        }
      }
    }
    let parent = try device.write("parent", "1")
    let child = try device.write("child", "1", after: [parent])
    try device.write("grandchild", "1", after: [child])
    try device.put("other", "1")
    for _ in 0..<40 { _ = try await device.step() }
    #expect(back.value("child") == nil && back.value("grandchild") == nil)

    back.state.withLock { $0.trouble = nil }
    for (change, reason) in try device.session.waitingForUser() {
      if reason == .needsDecision {
        try device.session.decide(change.key, .local)
      } else {
        _ = try device.session.retry([change.sequence])
      }
    }
    // After `retryLater` a change is not sent again before its time is over.
    while back.value("grandchild") == nil {
      if try await !device.step() { device.session.disconnect() }
      device.clock.advance(by: .seconds(1))
    }
    let arrived = back.state.withLock { $0.log.map(\.key) }
    #expect(arrived.filter { $0 != "other" } == ["parent", "child", "grandchild"])
  }

  @Test("the id of what another comes after is known when that is sent", arguments: [1, 8])
  func alias(parallel: Int) async throws {
    let ids = Lock([Key: KeyAlias]())
    let seen = Lock([String?]())
    let device = try RestDevice {
      RequestPeer(
        named: "x", options: RequestPeer.Options(parallel: parallel),
        send: { change in
          if change.key.text.hasPrefix("child") {
            seen.withLock { $0.append(ids.withLock { $0["parent"]?.text }) }
          }
          let alias = KeyAlias("id of \(change.key.text)")
          ids.withLock { $0[change.key] = alias }
          return .appliedAs(alias)
        })
    }
    let parent = try device.write("parent", "1")
    for number in 0..<5 { try device.write("child \(number)", "1", after: [parent]) }
    var hasAlias: [Bool] = []
    device.session.disconnect()
    while let call = try device.session.next() {
      if case .pushRequest(let push) = call, push.changes.contains(where: { $0.name != "parent" }) {
        hasAlias.append(try device.session.knownAliases().alias(ofKey: Array("parent".utf8)) != nil)
      }
      try device.session.receive(try await device.peer.answer(to: call))
    }
    #expect(hasAlias == [true])
    #expect(seen.withLock { $0 } == Array(repeating: "id of parent", count: 5))
  }

  private func device(_ back: BackEnd, parallel: Int) throws -> RestDevice {
    try RestDevice(resolver: .ask) {
      RequestPeer(
        named: "https://api.example.org", options: RequestPeer.Options(parallel: parallel),
        send: { try back.send($0) })
    }
  }
}

extension RestDevice {
  @discardableResult
  func write(_ key: String, _ value: String, after: [UInt64] = []) throws -> UInt64 {
    var attributes = EntryAttributes()
    attributes.after = after
    var batch = OperationBatch()
    try batch.add(
      .put, key: Array(key.utf8).rawSpan, value: Array(value.utf8).rawSpan,
      attributes: attributes)
    return try engine.commit(batch, durability: .durable).lastSeen
  }
}
