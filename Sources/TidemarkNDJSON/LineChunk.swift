internal import TidemarkEngine

/// Whole lines from a stream, to be handed to one decoder.
package struct LineChunk: Sendable {
  /// The lines with their ends.
  package var bytes: [UInt8]
  /// Where each line ends: the offset of its line feed, or of the end of the stream.
  package var lineEnds: [Int]
  /// The number of the first line in the stream, from 1; empty lines count.
  package var firstNumber: Int
  /// How many of the lines are not empty.
  package var lineCount: Int

  package init(firstNumber: Int) {
    bytes = []
    lineEnds = []
    self.firstNumber = firstNumber
    lineCount = 0
  }

  /// A line without its end, be that a line feed or carriage return and line feed.
  @_lifetime(borrow self)
  package func line(_ index: Int) -> RawSpan {
    let start = index > 0 ? lineEnds[index - 1] + 1 : 0
    var end = lineEnds[index]
    if end > start, bytes[end - 1] == UInt8(ascii: "\r") { end -= 1 }
    return bytes.rawSpan.extracting(start..<end)
  }
}
