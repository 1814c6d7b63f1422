internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

extension PeerConformance {
  /// A peer under test, and what checks say of it.
  struct Bench: Sendable {
    let peer: any Peer

    init(_ peer: any Peer) { self.peer = peer }

    func expect(_ isSo: Bool, _ otherwise: @autoclosure () -> String) throws {
      guard isSo else { throw Broken(otherwise()) }
    }

    func expect<T: Equatable>(_ found: T, is wanted: T, _ what: String) throws {
      guard found == wanted else { throw Broken("\(what) is \(found), not \(wanted)") }
    }

    /// Expects a call to fail.
    func expectFailure<R>(
      _ kinds: Set<PeerError.Kind>, _ what: String, _ body: () async throws -> R
    ) async throws {
      do { _ = try await body() } catch let error as PeerError {
        guard kinds.contains(error.kind) else {
          throw Broken("\(what) fails as \(error.kind), not as \(kinds.map(\.rawValue).sorted())")
        }
        return
      }
      throw Broken("\(what) does not fail")
    }

    /// A writer that has said hello.
    func writer(_ name: UInt8) async throws -> Writer {
      let writer = Writer(name)
      let answer = try await peer.hello(HelloRequest(replica: writer.replica))
      try expect(answer.mark.number, is: 0, "the mark of a replica that has pushed nothing")
      return writer
    }

    /// Pushes the writer's next batch and gives the verdicts.
    @discardableResult
    func push(_ writer: inout Writer, _ changes: PushedChange...) async throws -> [PushVerdict] {
      try await push(&writer, all: changes)
    }

    @discardableResult
    func push(_ writer: inout Writer, all changes: [PushedChange]) async throws -> [PushVerdict] {
      let batch = writer.batch(changes)
      let answer = try await peer.push(batch)
      try expect(answer.mark.number, is: batch.number, "the mark's number after a push")
      try expect(answer.mark.batchID, is: batch.batchID, "the mark's batch id after a push")
      try expect(
        answer.mark.verdicts.count, is: changes.count, "the count of verdicts after a push")
      for case .applied(let position) in answer.mark.verdicts {
        try expect(
          answer.range.contains(position), "a change is applied at a position outside the range")
      }
      return answer.mark.verdicts
    }

    /// All that a replica is given behind a cursor.
    func pullAll(
      _ replica: ReplicaID, after: FeedPosition = .beginning, scope: SyncScope = .everything,
      limits: SyncLimits = SyncLimits(), everyVersion: Bool = false
    ) async throws -> (entries: [FeedEntry], cursor: FeedPosition, pages: Int) {
      var entries: [FeedEntry] = []
      var cursor = after
      for pages in 1...5000 {
        let page = try await peer.pull(
          PullRequest(
            replica: replica, after: cursor, scope: scope, limits: limits,
            everyVersion: everyVersion))
        try expect(
          page.cursor.offset >= cursor.offset, "a pull's cursor goes back")
        try expect(page.range.contains(page.cursor), "a pull's cursor is not in its range")
        for entry in page.entries {
          try expect(
            entry.position.offset > (entries.last?.position.offset ?? after.offset),
            "the entries of the feed are not in order")
          try expect(
            entry.position.offset <= page.cursor.offset, "a pull's cursor is before its entries")
          entries.append(entry)
        }
        if page.cursor.offset >= page.range.head { return (entries, page.cursor, pages) }
        try expect(page.cursor != cursor, "a pull makes no progress before the feed's end")
        cursor = page.cursor
      }
      throw Broken("the pages do not end")
    }

    /// The value of a key; nil for nothing.
    func value(_ key: String, _ replica: ReplicaID) async throws -> String? {
      let answer = try await peer.values(ValuesRequest(replica: replica, keys: [Array(key.utf8)]))
      guard let entry = answer.entries.first, entry.kind == .put else { return nil }
      return String(decoding: entry.content.value, as: UTF8.self)
    }
  }

  /// Somebody who pushes.
  struct Writer: Sendable {
    let replica: ReplicaID
    private let name: UInt64
    var number: UInt64 = 0
    private var sequence: UInt64 = 0

    init(_ name: UInt8) {
      self.name = UInt64(name)
      replica = ReplicaID(padding: [UInt8](repeating: name, count: 16))
    }

    /// The next batch.
    mutating func batch(_ changes: [PushedChange]) -> PushRequest {
      number += 1
      return PushRequest(
        replica: replica, number: number, batchID: BatchID(number << 8 | name), changes: changes)
    }

    mutating func put(
      _ key: String, _ value: String, labels: [EntryLabel] = [], base: ChangeBase = .absent,
      group: UInt64 = 0
    ) -> PushedChange {
      change(.put, key, SyncContent(value: Array(value.utf8), labels: labels), base, group)
    }

    mutating func put(
      _ key: String, _ value: String, attachment: AttachmentReference
    ) -> PushedChange {
      change(.put, key, SyncContent(value: Array(value.utf8), attachment: attachment), .absent, 0)
    }

    mutating func delete(_ key: String, base: ChangeBase, group: UInt64 = 0) -> PushedChange {
      change(.delete, key, SyncContent(), base, group)
    }

    private mutating func change(
      _ kind: ChangeKind, _ key: String, _ content: SyncContent, _ base: ChangeBase,
      _ group: UInt64
    ) -> PushedChange {
      sequence += 1
      return PushedChange(
        sequence: sequence, kind: kind, key: Array(key.utf8), content: content, base: base,
        commitTime: (1_767_225_600_000 + sequence) << 16, atomicGroup: group)
    }
  }
}

extension PushVerdict {
  /// Where it says that something stands.
  var place: FeedPosition? {
    switch self {
    case .applied(let place), .duplicate(let place), .conflict(let place), .lost(let place): place
    case .rejected, .aborted: nil
    }
  }

  var name: String {
    switch self {
    case .applied: "applied"
    case .duplicate: "duplicate"
    case .conflict: "conflict"
    case .lost: "lost"
    case .rejected: "rejected"
    case .aborted: "aborted"
    }
  }
}
