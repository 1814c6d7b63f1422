internal import Tidemark
internal import TidemarkSync

extension PeerConformance {
  /// Reading the feed.
  static let pullChecks: [Check] = [
    Check("own operations are told of wherever they lie", needs: [.numbers]) {
      bench in
      var a = try await bench.writer(1)
      let put = a.put("k", "1", labels: ["x"])
      try await bench.push(&a, put)
      try await bench.push(&a, a.delete("k", base: .operation(sequence: put.sequence)))
      func kinds(_ scope: SyncScope) async throws -> [FeedEntry.Kind] {
        try await bench.peer.pull(
          PullRequest(replica: a.replica, after: .beginning, scope: scope)
        ).entries.map(\.kind)
      }
      try bench.expect(try await kinds(.everything), is: [.own, .own], "own operations")
      try bench.expect(
        try await kinds(SyncScope(keyPrefixes: ["z"])), is: [.own, .own],
        "own operations out of scope")
    },
    Check("own entries come without key and value, those of others whole", needs: [.numbers]) {
      bench in
      var a = try await bench.writer(1)
      var change = a.put("k", "1", labels: ["x", "y"])
      change.content.hash = [1, 2, 3]
      change.content.maxAgeSeconds = 60
      change.time = Timestamp(seconds: -5, nanoseconds: 7)
      let deleted = a.put("l", "1")
      let verdicts = try await bench.push(&a, change, deleted)
      let delete = a.delete("l", base: .operation(sequence: deleted.sequence))
      try await bench.push(&a, delete)
      let own = try await bench.pullAll(a.replica).entries
      try bench.expect(own.map(\.kind), is: [.own, .own, .own], "what the writer pulls")
      try bench.expect(own.allSatisfy(\.key.isEmpty), "own entries have keys")
      try bench.expect(
        own.map(\.operation.sequence), is: [change, deleted, delete].map(\.sequence),
        "the operations")
      try bench.expect(own[0].position, is: verdicts[0].place, "the position of an own entry")
      let others = try await bench.pullAll(Writer(2).replica).entries
      guard let put = others.first, let last = others.last else { throw Broken("nothing came") }
      try bench.expect(put.kind, is: .put, "the first entry")
      try bench.expect(put.key, is: change.key, "its key")
      try bench.expect(put.content, is: change.content, "its content")
      try bench.expect(put.commitTime, is: change.commitTime, "its commit time")
      try bench.expect(put.time, is: change.time, "its own time")
      try bench.expect(
        put.operation, is: OperationID(replica: a.replica, sequence: change.sequence),
        "its operation")
      try bench.expect(last.kind, is: .delete, "the last entry")
      try bench.expect(last.key, is: delete.key, "its key")
    },
    Check("pages hold what fits, lose nothing and come to an end", needs: [.numbers]) { bench in
      var a = try await bench.writer(1)
      for part in 0..<3 {
        try await bench.push(&a, all: (0..<20).map { a.put("k\(part) \($0)", "a value") })
      }
      let reader = Writer(2).replica
      let all = try await bench.pullAll(reader).entries
      try bench.expect(all.count, is: 60, "the count of entries")
      for limits in [
        SyncLimits(changes: 7), SyncLimits(bytes: 50), SyncLimits(changes: 1, bytes: 1),
      ] {
        let (entries, _, pages) = try await bench.pullAll(reader, limits: limits)
        try bench.expect(entries, is: all, "what came in small pages")
        try bench.expect(pages > 1, "limits of a pull are not kept to")
      }
    },
    Check("behind the cursor of its end the feed goes on with what is new", needs: [.numbers]) {
      bench in
      var a = try await bench.writer(1)
      let reader = Writer(2).replica
      try await bench.push(&a, a.put("k", "1"), a.put("l", "1"))
      let first = try await bench.pullAll(reader)
      let again = try await bench.pullAll(reader, after: first.cursor)
      try bench.expect(again.entries.isEmpty, "entries come twice")
      try await bench.push(&a, a.put("m", "1"))
      let second = try await bench.pullAll(reader, after: again.cursor)
      try bench.expect(second.entries.map(\.key), is: [Array("m".utf8)], "what is new")
      let middle = try await bench.pullAll(reader, after: first.entries[0].position)
      try bench.expect(
        middle.entries.map(\.key), is: ["l", "m"].map { Array($0.utf8) },
        "what stands behind an entry's position")
    },
    Check("a cursor that the feed did not give is refused", needs: [.numbers]) { bench in
      var a = try await bench.writer(1)
      try await bench.push(&a, a.put("k", "1"))
      let cursor = try await bench.pullAll(a.replica).cursor
      for position in [
        FeedPosition(epoch: cursor.epoch ^ 0x5555, offset: cursor.offset),
        FeedPosition(epoch: cursor.epoch, offset: cursor.offset + 1_000_000),
      ] {
        try await bench.expectFailure([.cursorGone], "a pull behind an unknown cursor") {
          try await bench.peer.pull(PullRequest(replica: a.replica, after: position))
        }
      }
    },
    Check("a pull that waits ends by itself when nothing comes", needs: [.waiting]) { bench in
      let a = try await bench.writer(1)
      let cursor = try await bench.pullAll(a.replica).cursor
      let answer = try await bench.peer.pull(
        PullRequest(replica: a.replica, after: cursor, waitMilliseconds: 20))
      try bench.expect(answer.entries.isEmpty, "something came")
    },
    Check("a pull that waits is woken by what comes", needs: [.waiting]) { bench in
      var a = try await bench.writer(1)
      let reader = Writer(2).replica
      let cursor = try await bench.pullAll(reader).cursor
      let peer = bench.peer
      async let waiting = peer.pull(
        PullRequest(replica: reader, after: cursor, waitMilliseconds: 600_000))
      try await bench.push(&a, a.put("k", "1"))
      let answer = try await waiting
      // Entries that come while a page is read may be in the next one.
      let rest = try await bench.pullAll(reader, after: answer.cursor).entries
      try bench.expect(
        (answer.entries + rest).map(\.key), is: [Array("k".utf8)], "what woke the pull")
    },
    Check("a pull that waits can be cancelled, and the next call works", needs: [.waiting]) {
      bench in
      var a = try await bench.writer(1)
      let cursor = try await bench.pullAll(a.replica).cursor
      let (peer, replica) = (bench.peer, a.replica)
      let task = Task {
        try await peer.pull(
          PullRequest(replica: replica, after: cursor, waitMilliseconds: 600_000))
      }
      try await Task.sleep(for: .milliseconds(50))
      task.cancel()
      do {
        _ = try await task.value
        throw Broken("a cancelled pull has an answer")
      } catch is CancellationError {}
      try await bench.push(&a, a.put("k", "1"))
    },
  ]
}
