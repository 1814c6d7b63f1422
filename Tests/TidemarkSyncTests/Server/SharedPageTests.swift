import Testing
import Tidemark
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("One page for many readers")
struct SharedPageTests {
  private let bench = Bench()
  private let coder = WireCoder()

  private func stage(
    _ request: PullRequest, access: SyncAccess = .everything, sharing other: StagedAnswer? = nil
  ) throws -> StagedAnswer {
    try bench.handler().stage(.pullRequest(request), access: access, sharing: other)
  }

  private func page(_ answer: StagedAnswer) throws -> PullAnswer {
    guard case .pullAnswer(let page) = answer.message else {
      throw PeerError(.malformed, "another message")
    }
    return page
  }

  private func keys(_ answer: StagedAnswer) throws -> [String] {
    try page(answer).entries.map { String(decoding: $0.key, as: UTF8.self) }
  }

  /// A feed of a writer's two entries, and a reader of it.
  private func feed() throws -> (writer: Device, request: PullRequest) {
    var writer = Device(1)
    let text = String(repeating: "a text that becomes shorter ", count: 40)
    _ = try bench.push(&writer, writer.put("a", text), writer.put("b", "2"))
    return (writer, PullRequest(replica: Device(2).id, after: .beginning))
  }

  @Test("readers who ask for the same get one page, each with a mark of its own in front of it")
  func shared() throws {
    let (_, request) = try feed()
    var second = Device(3)
    _ = try bench.push(&second, second.put("c", "3"))
    _ = try bench.push(&second, second.put("c", "4"))
    // The page begins behind what the second reader wrote; one has come further, to no entry more.
    var writer = Device(4)
    var first = request
    let all = try bench.pullAll(Device(2))
    first.after = try #require(all.entries.last).position
    _ = try bench.push(&writer, writer.put("d", String(repeating: "long ", count: 400)))
    var other = first
    other.replica = second.id
    other.after = all.cursor
    #expect(first.after.offset < other.after.offset)
    other.waitMilliseconds = 1000
    let one = try stage(first)
    let two = try stage(other, sharing: one)
    #expect(one.page != nil && two.page === one.page)
    for (answer, number, codec) in [(one, 0, WireCodec.zstd), (two, 2, .zstdBehindHead)] {
      let frame = try answer.frame(coder)
      #expect(try WireFrame.Header(frame.rawSpan, limit: WireFrame.defaultLimit).codec == codec)
      #expect(try coder.decode(frame) == answer.message)
      let page = try page(answer)
      #expect(page.entries.map(\.key) == [Array("d".utf8)] && page.mark.number == number)
    }
  }

  @Test("a reader who asks for something else, or may see less, gets a page of its own")
  func others() throws {
    let (_, request) = try feed()
    let one = try stage(request)
    func own(
      _ change: (inout PullRequest) -> Void = { _ in }, access: SyncAccess = .everything
    ) throws -> [String] {
      var request = request
      request.replica = Device(5).id
      change(&request)
      let answer = try stage(request, access: access, sharing: one)
      #expect(answer.page !== one.page)
      #expect(try coder.decode(answer.frame(coder)) == answer.message.normalized)
      return try keys(answer)
    }
    #expect(try own({ $0.scope = SyncScope(keyPrefixes: ["a"]) }) == ["a"])
    #expect(try own({ $0.limits.changes = 1 }) == ["a"])
    #expect(try own({ $0.everyVersion = true }) == ["a", "b"])
    #expect(try own(access: SyncAccess(to: SyncScope(keyPrefixes: ["b"]))) == ["b"])
    // The writer of an entry is told of it without its value.
    #expect(try own({ $0.replica = Device(1).id }) == ["", ""])
    var late = Device(6)
    _ = try bench.push(&late, late.put("c", "3"))
    #expect(try own() == ["a", "b", "c"])
  }

  @Test("a page is shared by readers of one database only")
  func databases() throws {
    let (_, request) = try feed()
    let one = try stage(request)
    let elsewhere = Bench()
    var writer = Device(1)
    _ = try elsewhere.push(&writer, writer.put("x", "1"), writer.put("y", "2"))
    let answer = try elsewhere.handler().stage(.pullRequest(request), sharing: one)
    #expect(try keys(answer) == ["x", "y"])
  }

  @Test("a page is read anew once a compaction has dropped what a key was before")
  func compaction() throws {
    var writer = Device(1)
    var places: [FeedPosition] = []
    func put(_ key: String, _ label: EntryLabel, base: ChangeBase = .absent) throws {
      let change = writer.put(key, "\(places.count)", labels: [label], base: base)
      places.append(try #require(try bench.push(&writer, change)[0].position))
    }
    try put("k", "l")
    try put("k", "m", base: .position(places[0]))
    try put("z", "l")
    try put("k", "m", base: .position(places[1]))
    try put("y", "l")
    // The first reader has heard that `k` has left; the second has yet to when that has gone.
    var request = PullRequest(
      replica: Device(2).id, after: places[2], scope: SyncScope(labels: ["l"]))
    let one = try stage(request)
    #expect(try keys(one) == ["y"] && one.page != nil)
    request.replica = Device(3).id
    #expect(try stage(request, sharing: one).page === one.page)
    _ = try bench.feed().engine.compact(CompactionOptions(dropHistory: true))
    let two = try stage(request, sharing: one)
    #expect(try keys(two) == ["k", "y"])
    #expect(two.page !== one.page)
  }
}
