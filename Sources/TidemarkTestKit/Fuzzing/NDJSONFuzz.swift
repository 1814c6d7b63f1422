internal import Tidemark
internal import TidemarkEngine
internal import TidemarkNDJSON

/// Splits bytes into lines, decodes them, writes the entries and decodes those again: they must be
/// the same. Options: bits 1 to 3, in pieces of which size the bytes come.
enum NDJSONFuzz {
  private struct Row: Equatable {
    var operation: DecodedLine.Operation
    var entryClass: EntryAttributes.Class
    var key: [UInt8]
    var value: [UInt8]
    var hash: [UInt8]
    var labels: [[UInt8]]
    var time: Timestamp?
    var maxAge: UInt32?
  }

  static func run(_ input: FuzzInput) throws(FuzzFinding) {
    let piece = [1, 3, 8, 31, 64, 1000, 4096, 1 << 20][Int(input.options >> 1 & 7)]
    let (rows, errors) = decode(input.body, piece: piece)
    let (whole, wholeErrors) = decode(input.body, piece: max(1, input.body.count))
    guard rows == whole, errors == wholeErrors else {
      throw FuzzFinding("lines depend on how the bytes come")
    }
    var writer = NDJSONWriter()
    for row in rows {
      let header = NDJSONWriter.Header(
        row.operation, entryClass: row.entryClass, time: row.time, maxAge: row.maxAge)
      writer.append(
        header, key: row.key.rawSpan, value: row.value.rawSpan, hash: row.hash.rawSpan,
        labels: row.labels)
    }
    let (again, newErrors) = decode(writer.bytes, piece: 4096)
    guard newErrors.isEmpty else {
      throw FuzzFinding("a line that was written cannot be read: \(newErrors[0])")
    }
    guard again == rows else { throw FuzzFinding("entries change when they are written") }
  }

  private static func decode(_ bytes: [UInt8], piece: Int) -> ([Row], [LineError]) {
    var splitter = LineSplitter(
      linesPerChunk: 7, bytesPerChunk: 1 << 12, maximumLineBytes: 1 << 14)
    var lines = DecodedLines()
    var errors: [LineError] = []
    var offset = 0
    func drain(_ splitter: inout LineSplitter) {
      while true {
        do throws(LineError) {
          guard let chunk = try splitter.next() else { return }
          errors += lines.appendSkippingBad(chunk)
        } catch { errors.append(error) }
      }
    }
    while offset < bytes.count {
      let end = min(bytes.count, offset + piece)
      splitter.append(bytes.rawSpan.extracting(offset..<end))
      drain(&splitter)
      offset = end
    }
    splitter.finish()
    drain(&splitter)
    return (lines.lines.map { row($0, lines) }, errors)
  }

  private static func row(_ line: DecodedLine, _ lines: DecodedLines) -> Row {
    Row(
      operation: line.operation, entryClass: line.entryClass,
      key: [UInt8](copying: lines.bytes(line.key)),
      value: [UInt8](copying: lines.bytes(line.value)),
      hash: [UInt8](copying: lines.bytes(line.hash)),
      labels: lines.labelSets.labels(inSet: line.labelSet), time: line.time,
      maxAge: line.maxAge)
  }

  static func seeds() -> [[UInt8]] {
    let lines = [
      #"{"key":"note/1","value":"Buy milk","labels":["inbox","öffentlich"]}"#,
      #"{"op":"put","key_base64":"AP8=","value_base64":"3q2+7w==","hash":"0af1","max_age":60}"#,
      #"{"op":"delete","key":"note/1","time":"2026-01-01T00:00:00.5Z"}"#,
      #"{"op":"touch","key":"a","max_age":4294967295,"class":"cache","hash_base64":"/w=="}"#,
      #" { "key" : "\u00e4\ud83d\ude00\n\"\\\/" , "value" : "\t" , "seq":12,"op_id":"ab.3" } "#,
      #"{"key":"j","x":{"a":[1,-2.5e+10,true,null]},"time":"1969-12-31T23:59:59+01:00"}"#,
      #"{"key":"","value":1}"#,
      #"{"key":"x","value":"1","unknown":[[[[1]]]]}"#,
    ]
    let all = lines.joined(separator: "\n") + "\r\n\n"
    var seeds = lines.enumerated().map { [UInt8(2 * ($0 % 8))] + Array($1.utf8) }
    seeds.append([0x0a] + Array(all.utf8))
    seeds.append([0x02, 0xef, 0xbb, 0xbf] + Array(all.utf8))
    return seeds
  }
}
