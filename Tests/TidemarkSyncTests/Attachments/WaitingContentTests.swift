import Testing
import Tidemark
import TidemarkEngine

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("Content that waits for its change, and callers with other tokens")
struct WaitingContentTests {
  private let film = content(300_000)
  private let piece = AttachRequest.partBytes

  struct Reaches: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var owner: SyncScope?
    var other: SyncScope?

    static let all = [
      Reaches(
        testDescription: "two prefixes", owner: SyncScope(keyPrefixes: ["a/"]),
        other: SyncScope(keyPrefixes: ["m/"])),
      Reaches(
        testDescription: "everything and a prefix", owner: nil,
        other: SyncScope(keyPrefixes: ["m/"])),
      Reaches(
        testDescription: "two labels", owner: SyncScope(labels: ["a"]),
        other: SyncScope(labels: ["m"])),
      Reaches(
        testDescription: "a prefix and a label", owner: SyncScope(keyPrefixes: ["a/"]),
        other: SyncScope(labels: ["m"])),
      Reaches(
        testDescription: "prefixes that overlap", owner: SyncScope(keyPrefixes: ["a/", "m/"]),
        other: SyncScope(keyPrefixes: ["m/"])),
      Reaches(
        testDescription: "an empty prefix and a label", owner: SyncScope(keyPrefixes: [""]),
        other: SyncScope(labels: ["m"])),
    ]
  }

  @Test(
    "content that waits is nothing to who knows its sender and its hash, but reaches elsewhere",
    arguments: Reaches.all, [false, true])
  func waits(reaches: Reaches, restarts: Bool) throws {
    let bench = Bench(restarts: restarts)
    let owner = SyncAccess(to: reaches.owner)
    let other = SyncAccess(to: reaches.other)
    var a = Device(1)
    #expect(
      try bench.attach(a, film, 0..<300_000, key: "a/film", access: owner).received == 300_000)
    // The same device as the other caller has it.
    var copy = a
    #expect(try bench.attach(copy, film, 0..<0, key: "m/1", access: other).received == 0)
    let attaches = copy.put("m/1", attachment: film, labels: ["m"])
    #expect(failure { _ = try bench.push(&copy, attaches, access: other) } == .busy)
    copy.number = 0
    var isValue = copy.put("m/2", "", labels: ["m"])
    isValue.content.blob = .of(film)
    #expect(failure { _ = try bench.push(&copy, isValue, access: other) } == .busy)
    #expect(try bench.fetch(film, key: "m/1", access: other) == nil)
    // The owner has lost nothing.
    #expect(try bench.attach(a, film, 0..<0, key: "a/film", access: owner).received == 300_000)
    let change = a.put("a/film", attachment: film, labels: ["a"])
    #expect(try bench.push(&a, change, access: owner).map(\.name) == ["applied"])
    #expect(try bench.fetch(film, key: "a/film", access: owner) == film)
  }

  @Test(
    "an upload of the same hash and another length takes nothing from the one that waits",
    arguments: [1, 299_999, 300_001, 1 << 30, 65_536], [false, true])
  func otherLength(length: Int, restarts: Bool) throws {
    let bench = Bench(restarts: restarts)
    let other = SyncAccess(to: SyncScope(keyPrefixes: ["m/"]))
    let a = Device(1)
    #expect(try bench.attach(a, film, 0..<3 * piece).received == 3 * piece)
    for access in [other, .everything] {
      let name = AttachmentReference(sha256: AttachmentReference.of(film).sha256, length: length)
      for bytes in [[], Array(film.prefix(min(length, piece)))] {
        let request = AttachRequest(
          replica: a.id, key: Array("m/1".utf8), attachment: name, offset: 0, bytes: bytes)
        let kind = failure { _ = try bench.handler().attach(request, access: access) }
        // Content that is whole is compared with its hash.
        let isWhole = bytes.count == length
        #expect(kind == (isWhole ? .malformed : nil))
      }
    }
    #expect(try bench.attach(a, film, 0..<0).received == 3 * piece)
    #expect(try bench.attach(a, film, 3 * piece..<300_000).received == 300_000)
  }

  @Test("a content serves all changes of a batch, and of no batch of another token")
  func batch() throws {
    let bench = Bench()
    let mine = SyncAccess(to: SyncScope(keyPrefixes: ["a/"]))
    let wider = SyncAccess(to: SyncScope(keyPrefixes: ["a/", "m/"]))
    var a = Device(1)
    _ = try bench.attach(a, film, 0..<300_000, key: "a/1", access: mine)
    let changes = (1...3).map { a.put("a/\($0)", attachment: film) }
    #expect(failure { _ = try bench.push(&a, all: changes, access: wider) } == .busy)
    a.number -= 1
    let names = try bench.push(&a, all: changes, access: mine).map(\.name)
    #expect(names == ["applied", "applied", "applied"])
  }
}
