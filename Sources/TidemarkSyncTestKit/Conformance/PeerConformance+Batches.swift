internal import TidemarkSync

extension PeerConformance {
  /// Hello and numbered batches: what exactly-once is made of.
  static let batchChecks: [Check] = [
    Check("hello says what the feed holds, and the same to everybody") { bench in
      let (a, b) = (Writer(1), Writer(2))
      let first = try await bench.peer.hello(HelloRequest(replica: a.replica))
      let second = try await bench.peer.hello(HelloRequest(replica: b.replica))
      try bench.expect(first.feed, is: second.feed, "the feed's id for another replica")
      try bench.expect(first.mark.number, is: 0, "the mark of a replica that has pushed nothing")
      try bench.expect(first.limits.changes > 0 && first.limits.bytes > 0, "a limit is 0")
      try bench.expect(!first.isLeaseExpired, "the lease of a new replica has expired")
      let page = try await bench.pullAll(a.replica)
      try bench.expect(page.entries.isEmpty, "the feed is not empty at the beginning")
    },
    Check("a batch that is sent again is answered as before and counted once", needs: [.numbers]) {
      bench in
      var a = try await bench.writer(1)
      var b = try await bench.writer(2)
      try await bench.push(&b, b.put("old", "x"))
      let batch = a.batch([a.put("k", "1"), a.put("old", "y"), a.put("k2", "1")])
      let first = try await bench.peer.push(batch)
      try bench.expect(
        first.mark.verdicts.map(\.name), is: ["applied", "conflict", "applied"], "the answer")
      // Meanwhile somebody else goes on.
      let place = first.mark.verdicts[0].place ?? .beginning
      try await bench.push(&b, b.put("k", "2", base: .position(place)))
      let second = try await bench.peer.push(batch)
      try bench.expect(second.mark, is: first.mark, "the mark when a batch is sent again")
      let hello = try await bench.peer.hello(HelloRequest(replica: a.replica))
      try bench.expect(hello.mark, is: first.mark, "the mark in an answer to hello")
      let page = try await bench.peer.pull(PullRequest(replica: a.replica, after: .beginning))
      try bench.expect(page.mark, is: first.mark, "the mark in an answer to a pull")
      let entries = try await bench.pullAll(Writer(3).replica, everyVersion: true).entries
      try bench.expect(
        entries.count { $0.operation.replica == a.replica }, is: 2, "the count of its entries")
    },
    Check("with another id in its place a batch is not taken", needs: [.numbers]) { bench in
      var a = try await bench.writer(1)
      let first = try await bench.peer.push(a.batch([a.put("k", "1")]))
      var other = a.batch([a.put("other", "1")])
      other.number = 1
      let answer = try await bench.peer.push(other)
      try bench.expect(answer.mark, is: first.mark, "the mark after another batch of the number")
      try bench.expect(
        try await bench.value("other", a.replica), is: nil, "what the other batch has written")
    },
    Check("behind a hole a batch is not taken", needs: [.numbers]) { bench in
      var a = try await bench.writer(1)
      let first = try await bench.peer.push(a.batch([a.put("k", "1")]))
      let missing = a.batch([a.put("missing", "1")])
      let later = a.batch([a.put("later", "1")])
      for batch in [later, later] {
        let answer = try await bench.peer.push(batch)
        try bench.expect(answer.mark, is: first.mark, "the mark behind a hole")
      }
      try bench.expect(
        try await bench.value("later", a.replica), is: nil, "what a batch behind a hole has written"
      )
      for batch in [missing, later] {
        let answer = try await bench.peer.push(batch)
        try bench.expect(answer.mark.number, is: batch.number, "the mark when the hole is filled")
      }
    },
    Check("an empty batch takes a number and nothing else", needs: [.numbers]) { bench in
      var a = try await bench.writer(1)
      try await bench.push(&a)
      try bench.expect(
        try await bench.push(&a, a.put("k", "1")).map(\.name), is: ["applied"], "what follows it")
    },
    Check("the batches of replicas are counted apart", needs: [.numbers]) { bench in
      var a = try await bench.writer(1)
      var b = try await bench.writer(2)
      for number in 1...3 {
        try await bench.push(&a, a.put("a\(number)", "1"))
        try await bench.push(&b, b.put("b\(number)", "1"))
      }
      let hello = try await bench.peer.hello(HelloRequest(replica: a.replica))
      try bench.expect(hello.mark.number, is: 3, "the mark of one of two replicas")
    },
    Check("a batch with too many changes is refused, and the next one is taken", needs: [.numbers])
    {
      bench in
      var a = try await bench.writer(1)
      let limit = try await bench.peer.hello(HelloRequest(replica: a.replica)).limits.changes
      guard limit < 20_000 else { return }
      var large = a.batch((0...limit).map { a.put("k\($0)", "") })
      large.number = 1
      try await bench.expectFailure([.malformed], "a batch of too many changes") {
        try await bench.peer.push(large)
      }
      a.number = 0
      try bench.expect(
        try await bench.push(&a, a.put("k", "1")).map(\.name), is: ["applied"], "what follows it")
    },
    Check("a push that knows of what the feed never had is refused", needs: [.numbers]) { bench in
      var a = try await bench.writer(1)
      try await bench.push(&a, a.put("k", "1"))
      let range = try await bench.peer.hello(HelloRequest(replica: a.replica)).range
      var late = a.batch([a.put("k", "2")])
      // As one that was sent before the feed was restored from an older copy.
      late.knownHead = FeedPosition(epoch: range.headPosition.epoch ^ 1, offset: range.head)
      try await bench.expectFailure([.busy], "a batch from another life of the feed") {
        try await bench.peer.push(late)
      }
      try bench.expect(try await bench.value("k", a.replica), is: "1", "what the key holds")
      late.knownHead = range.headPosition
      try bench.expect(
        try await bench.peer.push(late).mark.verdicts.map(\.name), is: ["applied"],
        "what knows the feed's end")
    },
    Check("a push that follows another batch than the last is not taken", needs: [.numbers]) {
      bench in
      var a = try await bench.writer(1)
      let first = a.batch([a.put("k", "1")])
      _ = try await bench.peer.push(first)
      var late = a.batch([a.put("k", "2")])
      // As one that was sent before the feed was restored from a copy with another batch.
      late.previousBatchID = BatchID(first.batchID.bits ^ 1)
      try bench.expect(
        try await bench.peer.push(late).mark.batchID, is: first.batchID, "the last batch")
      try bench.expect(try await bench.value("k", a.replica), is: "1", "what the key holds")
      late.previousBatchID = first.batchID
      try bench.expect(
        try await bench.peer.push(late).mark.verdicts.map(\.name), is: ["applied"],
        "what follows the last batch")
    },
    Check("a batch without number or id, or with a sequence twice, is refused", needs: [.numbers]) {
      bench in
      var a = try await bench.writer(1)
      let change = a.put("k", "1")
      for (number, id, changes) in [
        (UInt64(0), BatchID(1), [change]), (1, BatchID.none, [change]),
        (1, BatchID(1), [change, change]),
      ] {
        let batch = PushRequest(
          replica: a.replica, number: number, batchID: id, changes: changes)
        try await bench.expectFailure([.malformed], "a batch that makes no sense") {
          try await bench.peer.push(batch)
        }
      }
      try bench.expect(try await bench.value("k", a.replica), is: nil, "what it has written")
    },
  ]
}
