import Testing
import Tidemark
import TidemarkTestKit

@testable import TidemarkSyncProtocol

@Suite("Messages in both codings")
struct WireRoundTripTests {
  private static let rounds = 60

  @Test("a frame gives back the message, whatever is in it", arguments: WireMessage.Kind.allCases)
  func frames(_ kind: WireMessage.Kind) throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = RandomMessages(seed: seed)
    for round in 0..<Self.rounds {
      let message = random.message(kind)
      let coder = WireCoder(limit: 8 << 20, codec: round % 2 == 0 ? .zstd : .none)
      let frame = try coder.encode(message)
      let decoded = try coder.decode(frame)
      #expect(decoded == message.normalized, "seed \(seed), round \(round)")
      #expect(try coder.encode(decoded) == frame, "seed \(seed), round \(round)")
    }
  }

  @Test("the entries of a page, encoded once, go into the frames of all its readers")
  func sharedEntries() throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = RandomMessages(seed: seed)
    for round in 0..<Self.rounds {
      guard case .pullAnswer(let page) = random.message(.pullAnswer),
        case .pullAnswer(var other) = random.message(.pullAnswer)
      else { continue }
      (other.entries, other.cursor) = (page.entries, page.cursor)
      let coder = WireCoder(limit: 8 << 20, codec: round % 2 == 0 ? .zstd : .none)
      let body = try coder.body(of: page)
      for page in [page, other] {
        let read = try coder.decode(try coder.encode(page, body))
        #expect(
          read == WireMessage.pullAnswer(page).normalized, "seed \(seed), round \(round)")
      }
    }
  }

  @Test("JSON gives back the message, whatever is in it", arguments: WireMessage.Kind.allCases)
  func json(_ kind: WireMessage.Kind) throws {
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = RandomMessages(seed: seed)
    let coder = WireCoder(limit: 8 << 20)
    for round in 0..<Self.rounds {
      let message = random.message(kind)
      let text = try coder.encodeJSON(message)
      #expect(try coder.decodeJSON(text) == message.normalized, "seed \(seed), round \(round)")
      #expect(String(validating: text, as: UTF8.self) != nil, "seed \(seed), round \(round)")
    }
  }

  @Test("a scope is sorted, and long texts are cut between characters")
  func normalized() throws {
    let coder = WireCoder()
    let scope = SyncScope(labels: ["b", "a", "b"], prefixBytes: [[2], [1], [1, 0], [2]])
    let digest = DigestRequest(replica: ReplicaID([UInt8](repeating: 1, count: 16))!, scope: scope)
    guard case .digestRequest(let read) = try coder.decode(coder.encode(.digestRequest(digest)))
    else { throw PeerError(.malformed, "another message") }
    #expect(read.scope == SyncScope(labels: ["a", "b"], prefixBytes: [[1], [1, 0], [2]]))

    let long = PeerError(.failed, String(repeating: "é", count: 512) + "x")
    guard case .error(let cut) = try coder.decode(coder.encode(.error(long))) else {
      throw PeerError(.malformed, "another message")
    }
    #expect(cut.message == String(repeating: "é", count: 512))
    let odd = PeerError(.failed, "x" + String(repeating: "é", count: 512))
    guard case .error(let cut) = try coder.decodeJSON(coder.encodeJSON(.error(odd))) else {
      throw PeerError(.malformed, "another message")
    }
    #expect(cut.message == "x" + String(repeating: "é", count: 511))
  }

  @Test("the time to wait after a failure travels as whole seconds, rounded up and bounded")
  func retryAfter() throws {
    let coder = WireCoder()
    let waits: [(Duration?, Duration?)] = [
      (nil, nil), (.milliseconds(1), .seconds(1)), (.milliseconds(2500), .seconds(3)),
      (.seconds(-7), .zero), (.seconds(Int64.max), .seconds(UInt32.max)),
    ]
    for (wait, expected) in waits {
      let message = WireMessage.error(PeerError(.busy, "later", retryAfter: wait))
      let wanted = WireMessage.error(PeerError(.busy, "later", retryAfter: expected))
      #expect(try coder.decode(coder.encode(message)) == wanted)
      #expect(try coder.decodeJSON(coder.encodeJSON(message)) == wanted)
    }
  }

  @Test("a mark of only rejections, each in many words, still fits into a frame")
  func rejections() throws {
    let verdicts = (0..<4000).map {
      PushVerdict.rejected(
        SyncRejection(code: "invalid", message: "\($0) " + String(repeating: "words ", count: 300)))
    }
    let mark = ReplicaMark(number: 1, batchID: BatchID(1), verdicts: verdicts)
    let answer = WireMessage.pushAnswer(
      PushAnswer(mark: mark, range: FeedRange(epochs: [], head: 0)))
    for coder in [WireCoder(), WireCoder(codec: .none)] {
      guard case .pushAnswer(let read) = try coder.decode(coder.encode(answer)),
        case .pushAnswer(let readJSON) = try coder.decodeJSON(coder.encodeJSON(answer))
      else { throw PeerError(.malformed, "another message") }
      #expect(read == readJSON)
      #expect(read.mark.verdicts.count == 4000)
      guard case .rejected(let first) = read.mark.verdicts[0],
        case .rejected(let last) = read.mark.verdicts[3999]
      else { throw PeerError(.malformed, "other verdicts") }
      #expect(first.message.hasPrefix("0 words") && last.message.isEmpty)
      #expect(last.code == "invalid")
    }
  }
}
