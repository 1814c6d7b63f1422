import Testing
import Tidemark
import TidemarkEngine
import TidemarkTestKit

@testable import TidemarkSyncProtocol
@testable import TidemarkSyncServer

@Suite("The room that uploads share")
struct UploadBoundTests {
  private let piece = AttachRequest.partBytes
  private let victim = SyncAccess(to: SyncScope(keyPrefixes: ["v/"]))

  private func bench(uploads: Int) -> Bench {
    let bench = Bench()
    bench.options.attachmentUploads = uploads
    return bench
  }

  @Test(
    "a token that keeps as many uploads alive as there may be leaves room to others",
    arguments: [
      SyncAccess(to: SyncScope(keyPrefixes: ["m/"])), SyncAccess(to: SyncScope(labels: ["m"])),
      .everything,
    ], [4, 7, 16])
  func share(greedy: SyncAccess, uploads: Int) throws {
    let bench = bench(uploads: uploads)
    let films = (0..<uploads).map { content(20 * piece, UInt64($0)) }
    // Under ever new names, where the token says who it is.
    func device(_ number: Int) -> Device { Device(greedy.scope == nil ? 9 : UInt8(10 + number)) }
    func goOn(_ step: Int) {
      for (number, film) in films.enumerated() {
        let part = step * piece..<(step + 1) * piece
        _ = try? bench.attach(device(number), film, part, key: "m/\(number)", access: greedy)
      }
    }
    for step in 0..<6 {
      goOn(step)
      bench.clock.advance(by: .seconds(20))
    }
    var a = Device(1)
    let mine = content(2 * piece, 99)
    #expect(try bench.attach(a, mine, 0..<piece, key: "v/1", access: victim).received == piece)
    goOn(0)
    // Nobody sends another part of this upload from here on.
    #expect(
      try bench.attach(a, mine, piece..<2 * piece, key: "v/1", access: victim).received == 2 * piece
    )
    let change = a.put("v/1", attachment: mine)
    #expect(try bench.push(&a, change, access: victim).map(\.name) == ["applied"])
    // The one that began last has made room, and the others go on.
    let left = try films.indices.count { number in
      try bench.attach(device(number), films[number], 0..<0, key: "m/1", access: greedy).received
        > piece
    }
    #expect(left == uploads - 1)
  }

  @Test(
    "uploads of many callers that hardly go on give way to one that comes", arguments: [2, 5, 9])
  func slow(uploads: Int) throws {
    let bench = bench(uploads: uploads)
    let films = (0..<uploads).map { content(20 * piece, UInt64($0)) }
    for step in 0..<3 {
      for (number, film) in films.enumerated() {
        _ = try bench.attach(Device(UInt8(10 + number)), film, step * piece..<(step + 1) * piece)
      }
      bench.clock.advance(by: .seconds(30))
    }
    let mine = content(2 * piece, 99)
    #expect(try bench.attach(Device(1), mine, 0..<piece).received == piece)
    // The one that has come is not slow yet.
    bench.clock.advance(by: .seconds(30))
    #expect(failure { _ = try bench.attach(Device(2), content(2 * piece, 98), 0..<piece) } == nil)
    #expect(try bench.attach(Device(1), mine, piece..<2 * piece).received == 2 * piece)
  }

  @Test(
    "bytes are shared like numbers, and who has one upload keeps it", arguments: [[62], [34, 34]])
  func bytes(megabytes: [Int]) throws {
    let bench = Bench()
    bench.options.attachmentBytes = 0
    bench.options.attachmentUploadBytes = 0
    let step = AttachRequest.mostBytes
    // Together they fill the room.
    let films = megabytes.enumerated().map { content($1 << 20, UInt64($0)) }
    let greedy = SyncAccess(to: SyncScope(keyPrefixes: ["m/"]))
    for film in films {
      for start in stride(from: 0, to: film.count - step, by: step) {
        _ = try bench.attach(Device(2), film, start..<start + step, key: "m/1", access: greedy)
      }
    }
    let mine = content(12 << 20, 99)
    var kinds: [PeerError.Kind?] = []
    for start in stride(from: 0, to: mine.count - step, by: step) {
      kinds.append(
        failure {
          _ = try bench.attach(Device(1), mine, start..<start + step, key: "v/1", access: victim)
        })
    }
    #expect(kinds.last == (megabytes.count == 1 ? .busy : .some(nil)), "\(kinds)")
    #expect(try bench.attach(Device(2), films[0], 0..<0, key: "m/1", access: greedy).received > 0)
  }

  @Test("a complete upload that waits for its push is not evicted to make room for a new one")
  func whole() throws {
    let bench = bench(uploads: 2)
    let waiting = (0..<4).map { content(piece, 50 + UInt64($0)) }
    for film in waiting { _ = try bench.attach(Device(3), film, 0..<piece) }
    bench.clock.advance(by: .seconds(120))
    for number in 0..<2 {
      _ = try bench.attach(Device(1), content(2 * piece, UInt64(number)), 0..<piece)
    }
    #expect(failure { _ = try bench.attach(Device(1), content(2 * piece, 9), 0..<piece) } == .busy)
    for film in waiting { #expect(try bench.attach(Device(3), film, 0..<0).received == piece) }
  }
}
