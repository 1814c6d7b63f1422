/// Input of somebody at a terminal, or from a pipe.
enum Input: Equatable {
  /// The line as far as it has been typed; nothing of the kind comes from a pipe.
  case typing(String)
  case line(String)
  case end
}

/// A line that is typed, byte by byte, by a terminal that leaves all keys to the program.
struct LineEditor {
  private var typed: [UInt8] = []

  /// Longer lines are nobody's typing.
  private static let mostBytes = 4_096

  /// Takes bytes that came together, as many as a key sends or as were pasted.
  mutating func take(_ bytes: some Sequence<UInt8>) -> [Input] {
    var inputs: [Input] = []
    loop: for byte in bytes {
      switch byte {
      case 0x03, 0x04: return inputs + [.end]  // control-C and control-D
      case 0x0a, 0x0d:
        inputs.append(.line(text))
        typed = []
      case 0x15: typed = []  // control-U
      case 0x7f, 0x08: typed = Array(text.dropLast().utf8)
      // Arrows and the like: nothing is done about what follows.
      case 0x1b: break loop
      case 0x20... where typed.count < Self.mostBytes: typed.append(byte)
      default: break
      }
    }
    return inputs + [.typing(text)]
  }

  private var text: String { String(decoding: typed, as: UTF8.self) }
}
