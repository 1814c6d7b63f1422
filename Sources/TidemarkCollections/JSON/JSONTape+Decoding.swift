internal import TidemarkEngine
internal import TidemarkNDJSON

extension JSONTape {
  /// The characters of a string.
  func string(_ node: Node) -> String {
    guard node.isPlain else {
      return String(decoding: Self.unescaped(bytes(of: node)), as: UTF8.self)
    }
    return text.string(Int(node.start) + 1..<Int(node.end) - 1)
  }

  /// The first name of an object, from one of its names on, that says these UTF-8 bytes.
  /// - Parameters:
  ///   - first: the node of a name.
  ///   - end: the node behind the object, or of the name to stop at.
  /// - Returns: its node; nil where there is none.
  @inline(__always)
  func name(_ name: RawSpan, from first: Int, upTo end: Int) -> Int? {
    let nodes = nodes.span
    let text = text.rawSpan
    var index = first
    while index < end {
      let node = nodes[index]
      let start = Int(node.start) + 1
      if node.isPlain {
        if Int(node.end) - 1 - start == name.byteCount,
          text.extracting(start..<Int(node.end) - 1).isSame(as: name)
        {
          return index
        }
      } else if Self.unescaped(bytes(of: node)).rawSpan.isSame(as: name) {
        return index
      }
      index = Int(nodes[index + 1].next)
    }
    return nil
  }

  /// The path from the whole text to a value, as codings name it.
  func path(to target: Int) -> [JSONKey] {
    var path: [JSONKey] = []
    var index = 0
    while index < target, target < nodes[index].next {
      let isObject = nodes[index].kind == .object
      index += isObject ? 2 : 1
      var position = 0
      while target >= nodes[index].next {
        index = Int(nodes[index].next) + (isObject ? 1 : 0)
        position += 1
      }
      path.append(isObject ? JSONKey(string(nodes[index - 1])) : JSONKey(position))
    }
    return path
  }
}

/// A step of a path in a JSON text: a name or a position.
struct JSONKey: CodingKey {
  let stringValue: String
  let intValue: Int?

  init(_ name: String) {
    stringValue = name
    intValue = nil
  }

  init(_ position: Int) {
    stringValue = "\(position)"
    intValue = position
  }

  init?(stringValue: String) { self.init(stringValue) }

  init?(intValue: Int) { self.init(intValue) }
}
