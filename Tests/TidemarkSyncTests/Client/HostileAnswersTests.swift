import Testing
import Tidemark

@testable import TidemarkSync
@testable import TidemarkSyncProtocol

@Suite("Answers that no peer should give")
struct HostileAnswersTests {
  /// A device that has synced once, and what its peer says at the next hello.
  private func greeted() throws -> (world: SyncWorld, hello: HelloAnswer) {
    let world = try SyncWorld(devices: 1)
    try world.put(0, "a", "1")
    try world.settle()
    world.devices[0].session.disconnect()
    guard let call = try world.devices[0].session.next(),
      case .helloAnswer(let answer) = try world.answer(call)
    else { throw PeerError(.failed, "no hello") }
    return (world, answer)
  }

  private func expectMalformed(_ answer: WireMessage, _ world: SyncWorld) throws {
    let error = #expect(throws: PeerError.self) {
      try world.devices[0].session.receive(answer)
    }
    #expect(error?.kind == .malformed)
    // It did no harm: the store opens, and goes on with a peer that makes sense.
    try world.restart(0)
    try world.put(0, "a", "2")
    try world.settle()
    #expect(try world.serverState() == ["a": "2 "])
  }

  @Test("an epoch that begins at offset 0 is refused")
  func epochAtZero() throws {
    var (world, hello) = try greeted()
    let own = world.devices[0].session.progress.cursor.epoch
    hello.range.epochs = [
      FeedEpoch(epoch: own, firstOffset: 0), FeedEpoch(epoch: own ^ 1, firstOffset: 0),
    ]
    try expectMalformed(.helloAnswer(hello), world)
  }

  @Test("numbers after which nothing can be counted are refused", arguments: 0..<4)
  func numbersWithoutSuccessor(place: Int) throws {
    var (world, hello) = try greeted()
    switch place {
    case 0: hello.mark.number = .max
    case 1: hello.range.head = .max
    case 2: hello.range.truncatedThrough = .max
    default:
      hello.mark.verdicts = [
        .applied(FeedPosition(epoch: hello.range.headPosition.epoch, offset: .max))
      ]
    }
    try expectMalformed(.helloAnswer(hello), world)
  }

  @Test("a verdict at the end of all offsets is not written down")
  func verdictAtTheEnd() throws {
    let (world, _) = try greeted()
    try world.put(0, "b", "1")
    guard let push = try world.nextPush(0), let range = world.devices[0].session.range else {
      throw PeerError(.failed, "nothing to push")
    }
    let mark = ReplicaMark(
      number: push.number, batchID: push.batchID,
      verdicts: [.applied(FeedPosition(epoch: range.headPosition.epoch, offset: .max))])
    #expect(throws: PeerError.self) {
      try world.devices[0].session.receive(.pushAnswer(PushAnswer(mark: mark, range: range)))
    }
    try world.restart(0)
    try world.settle()
    #expect(try world.serverState() == ["a": "1 ", "b": "1 "])
  }
}
