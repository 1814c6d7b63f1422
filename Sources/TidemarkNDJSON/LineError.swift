internal import TidemarkEngine

/// A line of an import that cannot be taken.
///
/// The text names fields and positions, never the line's data.
package struct LineError: Error, Sendable, Hashable {
  /// The kind of the fault.
  package enum Kind: Sendable, Hashable {
    /// Not JSON.
    case syntax
    /// JSON, but not what a line of the format says.
    case content
    /// A key, value, label or other field is longer, larger or more than allowed.
    case outOfBounds
  }

  /// The kind of the fault.
  package var kind: Kind
  /// The number of the line, from 1.
  package var line: Int
  /// Where in the line, in characters from 1; 0 when it is about the line as a whole.
  package var column: Int
  /// The fault and what to do, in words.
  package var reason: String

  package init(_ kind: Kind, line: Int, column: Int, _ reason: String) {
    self.kind = kind
    self.line = line
    self.column = column
    self.reason = reason
  }

  /// The error of a scanner, placed in its line.
  init(_ error: JSONError, in bytes: RawSpan, number: Int) {
    var column = 1
    for offset in 0..<min(error.offset, bytes.byteCount)
    where (try? bytes.u8(at: offset)).map({ $0 & 0xc0 != 0x80 }) ?? false { column += 1 }
    let kind: Kind =
      switch error.reason {
      case .refused(let problem): problem.isOutOfBounds ? .outOfBounds : .content
      default: .syntax
      }
    self.init(kind, line: number, column: column, error.reason.description)
  }
}

extension LineError: CustomStringConvertible {
  package var description: String {
    column > 0 ? "line \(line), column \(column): \(reason)" : "line \(line): \(reason)"
  }
}
