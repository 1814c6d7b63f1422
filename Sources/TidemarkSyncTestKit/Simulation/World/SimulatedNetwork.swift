internal import TidemarkSync

/// Messages under way, which may arrive in any order, twice, late or never.
struct SimulatedNetwork {
  struct Message {
    enum Body {
      case request(WireMessage)
      /// The server has made it, and waits for its disk.
      case staged(SimulatedServer.Staged, for: WireMessage)
      case answer(Result<WireMessage, PeerError>)
    }

    /// The device that asks.
    var device: Int
    var connection: Int
    /// The call, by its number.
    var call: Int
    var body: Body
  }

  /// Older ones are lost.
  private static let most = 64

  private(set) var messages: [Message] = []
  private var calls = 0

  mutating func send(_ call: WireMessage, from device: SimulatedDevice) {
    calls += 1
    device.awaited = calls
    add(
      Message(
        device: device.index, connection: device.connection, call: calls, body: .request(call)))
  }

  mutating func add(_ message: Message) {
    messages.append(message)
    if messages.count > Self.most { messages.removeFirst() }
  }

  /// Takes one of the messages that may arrive.
  /// - Parameter keeps: whether it stays under way, too.
  mutating func take(
    _ event: SyncEvent, keeps: Bool, from mayArrive: (Message) -> Bool
  ) -> Message? {
    let places = messages.indices.filter { mayArrive(messages[$0]) }
    guard !places.isEmpty else { return nil }
    let place = places[event.index(below: places.count)]
    return keeps ? messages[place] : messages.remove(at: place)
  }

  mutating func removeAll() { messages = [] }
}
