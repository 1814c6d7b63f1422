internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

extension PeerConformance {
  /// Values and sums.
  static let readChecks: [Check] = [
    Check("values are what keys hold, deletes among them, without what is absent") { bench in
      var a = try await bench.writer(1)
      let put = a.put("k", "1", labels: ["x"])
      let gone = a.put("gone", "1")
      try await bench.push(&a, put, gone)
      try await bench.push(&a, a.delete("gone", base: .operation(sequence: gone.sequence)))
      let keys = ["k", "absent", "gone"].map { Array($0.utf8) }
      let answer = try await bench.peer.values(ValuesRequest(replica: a.replica, keys: keys))
      try bench.expect(answer.answered, is: 3, "the count of keys that were answered")
      try bench.expect(answer.entries.map(\.kind), is: [.put, .delete], "what was found")
      try bench.expect(answer.entries.map(\.key), is: [keys[0], keys[2]], "its keys")
      try bench.expect(answer.entries[0].content, is: put.content, "the content of a key")
      let feed = try await bench.pullAll(Writer(2).replica).entries
      try bench.expect(
        answer.entries[0].position, is: feed.first { $0.key == keys[0] }?.position,
        "the position of a key")
    },
    Check("values that are too many for one answer are asked for again") { bench in
      var a = try await bench.writer(1)
      let value = String(repeating: "v", count: 40_000)
      for number in 0..<10 { try await bench.push(&a, a.put("k\(number)", value)) }
      var keys = (0..<10).map { Array("k\($0)".utf8) }
      var found: [[UInt8]] = []
      while !keys.isEmpty {
        let answer = try await bench.peer.values(ValuesRequest(replica: a.replica, keys: keys))
        try bench.expect(
          (1...keys.count).contains(answer.answered), "\(answer.answered) keys were answered")
        found += answer.entries.map(\.key)
        keys.removeFirst(answer.answered)
      }
      try bench.expect(found, is: (0..<10).map { Array("k\($0)".utf8) }, "what was found")
    },
    Check("the sums of a few keys are those that a store computes", needs: [.digest]) { bench in
      var a = try await bench.writer(1)
      let changes = [a.put("k", "1", labels: ["x"]), a.put("l", ""), a.put("m", "3")]
      try await bench.push(&a, all: changes)
      try await bench.push(
        &a, a.delete("m", base: .operation(sequence: changes[2].sequence)))
      let answer = try await Self.whole(bench.peer, DigestRequest(replica: a.replica))
      var sum = DigestSum()
      for change in changes.prefix(2) { sum = sum + Self.sum(of: change) }
      try bench.expect(answer.total, is: sum, "the sum")
      guard case .keys(let keys) = answer.content else { throw Broken("two keys are not told") }
      try bench.expect(
        Set(keys.map(\.key)), is: Set(changes.prefix(2).map(\.key)), "the keys")
      let feed = try await bench.pullAll(Writer(2).replica).entries
      for key in keys {
        try bench.expect(
          key.position, is: feed.first { $0.key == key.key }?.position, "a key's position")
      }
    },
    Check("the sums of many keys add up, part by part", needs: [.digest]) { bench in
      var a = try await bench.writer(1)
      let changes = (0..<700).map { a.put("k\($0)", "value \($0)", labels: ["x"]) }
      try await bench.push(&a, all: changes)
      let replica = a.replica
      let root = try await Self.whole(bench.peer, DigestRequest(replica: replica))
      guard case .sums(let sums) = root.content else { throw Broken("700 keys have no parts") }
      try bench.expect(sums.count, is: 256, "the count of parts")
      try bench.expect(sums.reduce(DigestSum(), +), is: root.total, "the sum of the parts")
      try bench.expect(
        changes.map(Self.sum(of:)).reduce(DigestSum(), +), is: root.total, "the sum of all")
      var found: Set<[UInt8]> = []
      var asked = sums.indices.filter { sums[$0].keys > 0 && $0 % 16 == 0 }
      while !asked.isEmpty {
        let answer = try await bench.peer.digest(
          DigestRequest(replica: replica, paths: asked.map { [UInt8($0)] }))
        guard (1...asked.count).contains(answer.parts.count) else {
          throw Broken("\(answer.parts.count) of \(asked.count) parts came")
        }
        for (index, part) in zip(asked, answer.parts) {
          try bench.expect(part.total, is: sums[index], "the sum of a part")
          guard case .keys(let keys) = part.content else { throw Broken("few keys are not told") }
          for key in keys {
            let hash = ContentFingerprint.keyHash(key.key.rawSpan)
            try bench.expect(Int(hash >> 56), is: index, "the part of a key")
            found.insert(key.key)
          }
        }
        asked.removeFirst(answer.parts.count)
      }
      let wanted = changes.map(\.key).filter {
        ContentFingerprint.keyHash($0.rawSpan) >> 56 % 16 == 0
      }
      try bench.expect(found, is: Set(wanted), "the keys in some of the parts")
    },
    Check("sums are kept per scope", needs: [.digest]) { bench in
      var a = try await bench.writer(1)
      let inside = a.put("k", "1", labels: ["in"])
      try await bench.push(&a, inside, a.put("l", "1"))
      let answer = try await Self.whole(
        bench.peer, DigestRequest(replica: a.replica, scope: SyncScope(labels: ["in"])))
      try bench.expect(answer.total, is: Self.sum(of: inside), "the sum of a scope")
    },
  ].map { Check($0.description, needs: $0.needs.union([.numbers]), $0.body) }

  /// The answer about all keys.
  private static func whole(
    _ peer: any Peer, _ request: DigestRequest
  ) async throws -> DigestPart {
    let parts = try await peer.digest(request).parts
    guard parts.count == 1 else { throw Broken("one part was asked for, \(parts.count) came") }
    return parts[0]
  }

  /// The share of a key in the sums.
  private static func sum(of change: PushedChange) -> DigestSum {
    let fingerprint = ContentFingerprint(
      key: change.key.rawSpan, value: change.content.value.rawSpan,
      labels: change.content.labels.map(\.bytes))
    return DigestSum(keys: 1, sum: fingerprint.bits)
  }
}
