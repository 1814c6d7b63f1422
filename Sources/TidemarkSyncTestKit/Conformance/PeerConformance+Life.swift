internal import TidemarkSync

extension PeerConformance {
  /// Large values, many callers at once, and the end.
  static let lifeChecks: [Check] = [
    Check("a value larger than a page is meant to be goes both ways", needs: [.numbers]) { bench in
      var a = try await bench.writer(1)
      let value = String((0..<1_500_000).map { _ in "abcdefgh" }.joined().prefix(1_500_000))
      try await bench.push(&a, a.put("small", "1"), a.put("large", value), a.put("last", "1"))
      let entries = try await bench.pullAll(Writer(2).replica).entries
      try bench.expect(entries.count, is: 3, "the count of entries")
      try bench.expect(
        entries[1].content.value == Array(value.utf8), "the large value is another")
    },
    Check("callers at the same time do not disturb each other", needs: [.numbers]) { bench in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for name in UInt8(1)...6 {
          group.addTask {
            var writer = try await bench.writer(name)
            for number in 0..<10 {
              let verdicts = try await bench.push(&writer, writer.put("\(name)/\(number)", "1"))
              try bench.expect(verdicts.map(\.name), is: ["applied"], "a push among others")
              _ = try await bench.pullAll(writer.replica)
            }
          }
        }
        try await group.waitForAll()
      }
      let entries = try await bench.pullAll(Writer(9).replica).entries
      try bench.expect(Set(entries.map(\.key)).count, is: 60, "the count of keys")
      try bench.expect(entries.count, is: 60, "the count of entries")
    },
    Check("after closing, calls fail and do not hang") { bench in
      let a = try await bench.writer(1)
      await bench.peer.close()
      try await bench.expectFailure([.unavailable, .failed], "a call after closing") {
        try await bench.peer.hello(HelloRequest(replica: a.replica))
      }
    },
  ]
}
