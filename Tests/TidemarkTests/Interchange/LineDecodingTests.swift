import Testing
import Tidemark
import TidemarkEngine
@testable import TidemarkNDJSON

@Suite("Lines of an import")
struct LineDecodingTests {
  @Test("a line with every field gives the whole entry")
  func whole() throws {
    let line =
      #"{"op":"put","key":"note/1","value":"a \"b\" \u00e9","hash":"abc","#
      + #""labels":["inbox","2026"],"time":"2026-09-01T00:00:00.5Z","max_age":300,"#
      + #""class":"cache","seq":17,"op_id":"8f.17"}"#
    #expect(
      try decode(line)
        == PlainEntry(
          operation: .put, entryClass: .cache, key: utf8("note/1"), value: utf8("a \"b\" é"),
          hash: utf8("abc"), labels: [utf8("2026"), utf8("inbox")],
          time: Timestamp(seconds: 1_788_220_800, nanoseconds: 500_000_000), maxAge: 300))
  }

  @Test("a field that a line leaves out has its default")
  func defaults() throws {
    #expect(try decode(#"{"key":"k","value":""}"#) == PlainEntry(key: utf8("k")))
    #expect(
      try decode(#"{"key":"k","value":"","labels":[],"class":"owned","max_age":0}"#)
        == PlainEntry(key: utf8("k"), maxAge: 0))
  }

  @Test("fields may come in any order, with white space between them and escapes in their names")
  func order() throws {
    let line =
      " { \"value\" : \"v\" ,\t\"\\u006bey\" : \"k\" , \"labels\" : [ \"a\" , \"b\" ] , "
      + "\"op\" : \"\\u0070ut\" } \r"
    #expect(
      try decode(line)
        == PlainEntry(key: utf8("k"), value: utf8("v"), labels: [utf8("a"), utf8("b")]))
  }

  @Test("deletes and touches have no value")
  func withoutValue() throws {
    #expect(
      try decode(#"{"op":"delete","key":"k","time":"1970-01-01T00:00:00Z"}"#)
        == PlainEntry(operation: .delete, key: utf8("k"), time: Timestamp(seconds: 0)))
    #expect(
      try decode(#"{"key":"k","hash":"h","max_age":4294967295,"op":"touch"}"#)
        == PlainEntry(operation: .touch, key: utf8("k"), hash: utf8("h"), maxAge: .max))
  }

  @Test("bytes that are no text come as base64")
  func base64() throws {
    #expect(
      try decode(#"{"key_base64":"/wA=","value_base64":"AAEC/w==","hash_base64":"gA=="}"#)
        == PlainEntry(key: [0xff, 0], value: [0, 1, 2, 0xff], hash: [0x80]))
    #expect(try decode(#"{"key":"k","value_base64":""}"#) == PlainEntry(key: utf8("k")))
  }

  @Test("a byte order mark is passed over in front of the first line only")
  func byteOrderMark() throws {
    let line = "\u{feff}{\"key\":\"k\",\"value\":\"v\"}"
    #expect(try decode(line).key == utf8("k"))
    var lines = DecodedLines()
    #expect(throws: LineError.self) { try lines.append(line, number: 2) }
  }

  @Test("labels are sorted bytewise, each once, whatever their lengths")
  func labels() throws {
    let line =
      #"{"key":"k","value":"","labels":["b","é","a\u0000","a","section:games!","section:games","#
      + #""b","abcdefgh","abcdefghi","abcdefg","section:games","Z"]}"#
    let expected = [
      "Z", "a", "a\0", "abcdefg", "abcdefgh", "abcdefghi", "b", "section:games",
      "section:games!", "é",
    ]
    #expect(try decode(line).labels == expected.map { utf8($0) })
  }

  @Test("labels come as text, as base64 or as both, and merge to one set")
  func labelsBase64() throws {
    let union = [utf8("a"), utf8("b"), [0xff]]
    var lines = DecodedLines()
    for line in [
      #"{"key":"k","value":"v","labels":["a"],"labels_base64":["/w==","Yg==","YQ=="]}"#,
      // Here the set of each list is in the table already, or the first one is new.
      #"{"key":"k","value":"v","labels":["a"]}"#,
      #"{"labels":["a"],"labels_base64":["/w==","Yg=="],"key":"k","value":"v"}"#,
      #"{"labels_base64":["Yg==","/w=="],"key":"k","value":"v","labels":["a","b"]}"#,
      #"{"labels_base64":["Yg==","/w=="],"key":"k","value":"v","labels":["a"]}"#,
      #"{"labels":["a"],"key":"k","labels_base64":[],"value":"v"}"#,
      #"{"labels":[],"key":"k","labels_base64":["YQ=="],"value":"v"}"#,
      #"{"key":"k","value":"v","labels_base64":[],"labels":[]}"#,
    ] { try lines.append(line) }
    #expect(
      lines.entries.map(\.labels)
        == [union, [utf8("a")], union, union, union, [utf8("a")], [utf8("a")], []])
    #expect(lines.entries.allSatisfy { $0.key == utf8("k") && $0.value == utf8("v") })
    #expect(lines.labelSets.count == 3)
  }

  @Test("equal sets of labels share a number, also in another order")
  func labelSets() throws {
    var lines = DecodedLines()
    let sets = [
      #"["a","b"]"#, "[]", #"["b","a"]"#, #"["a","b","b"]"#, #"["ab"]"#, #"["b"]"#,
      #"["a","b","c"]"#,
    ]
    for set in sets { try lines.append(#"{"key":"k","value":"","labels":\#(set)}"#) }
    try lines.append(#"{"key":"k","value":""}"#)
    #expect(lines.lines.map(\.labelSet) == [1, 0, 1, 1, 2, 3, 4, 0])
    #expect(lines.labelSets.count == 5)
    #expect(lines.labelSets.labelCount(inSet: 4) == 3)
    #expect(lines.labelSets.labels(inSet: 0) == [])
    let label = [UInt8](copying: lines.labelSets.label(1, inSet: 1))
    #expect(label == utf8("b"))
  }

  @Test("thousands of sets of labels keep their numbers")
  func manyLabelSets() throws {
    var lines = DecodedLines()
    for round in 0..<2 {
      for i in 0..<3_000 {
        try lines.append(#"{"key":"k","value":"","labels":["kind:\#(i % 7)","n:\#(i)"]}"#)
        #expect(lines.lines[round * 3_000 + i].labelSet == i + 1)
      }
    }
    #expect(lines.labelSets.labels(inSet: 2_001) == [utf8("kind:5"), utf8("n:2000")])
  }

  @Test("unknown fields are passed over, checked and told once")
  func unknownFields() throws {
    var lines = DecodedLines()
    try lines.append(#"{"key":"k","value":"v","x":{"a":[1,{"key":null}]},"y":1e9,"é":"\n"}"#)
    try lines.append(#"{"x":true,"key":"l","value":"w","x":false}"#)
    #expect(lines.entries.map(\.key) == [utf8("k"), utf8("l")])
    #expect(lines.entries.map(\.value) == [utf8("v"), utf8("w")])
    #expect(lines.unknownFields.names == ["x", "y", "é"])
    #expect(throws: LineError.self) { try lines.append(#"{"key":"k","value":"v","z":[1,]}"#) }
    #expect(throws: LineError.self) { try lines.append(#"{"z":1}"#) }
    #expect(lines.unknownFields.names == ["x", "y", "é"])
  }

  @Test("hostile numbers and lengths of unknown fields take no memory")
  func unknownFieldBounds() throws {
    var lines = DecodedLines()
    let long = String(repeating: "x", count: 100_000)
    try lines.append(#"{"key":"k","value":"v","\#(long)":1}"#)
    for i in 0..<1_000 { try lines.append(#"{"key":"k","value":"v","f\#(i)":1}"#) }
    let names = lines.unknownFields.names
    #expect(names.count == UnknownFields.maximumCount)
    #expect(names[0].utf8.count == UnknownFields.maximumLength)

    var sum = UnknownFields()
    sum.formUnion(lines.unknownFields)
    sum.formUnion(lines.unknownFields)
    #expect(sum.names == names)
  }

  @Test("nothing of a bad line stays")
  func badLinesLeaveNothing() throws {
    var lines = DecodedLines()
    try lines.append(#"{"key":"k","value":"v","labels":["a"]}"#)
    let bytes = lines.byteCount
    #expect(throws: LineError.self) {
      try lines.append(#"{"key":"long key","value":"long value","labels":["b"],"time":"x"}"#)
    }
    #expect(lines.count == 1)
    #expect(lines.byteCount == bytes)
    #expect(lines.labelSets.count == 2)
    try lines.append(#"{"key":"l","value":"w","labels":["c"]}"#, number: 3)
    #expect(lines.entries.map(\.key) == [utf8("k"), utf8("l")])
    #expect(lines.entries.map(\.labels) == [[utf8("a")], [utf8("c")]])
    #expect(lines.lines.map(\.number) == [1, 3])
  }

  @Test("an emptied list starts afresh")
  func emptied() throws {
    var lines = DecodedLines(expecting: 10)
    for round in 0..<3 {
      try lines.append(#"{"key":"k\#(round)","value":"v","labels":["a\#(round)"],"x":1}"#)
      #expect(
        lines.entries
          == [
            PlainEntry(
              key: utf8("k\(round)"), value: utf8("v"), labels: [utf8("a\(round)")])
          ])
      #expect(lines.labelSets.count == 2)
      lines.removeAll()
      #expect(lines.count == 0)
      #expect(lines.byteCount == 0)
      #expect(lines.labelSets.count == 1)
      #expect(lines.unknownFields.isEmpty)
    }
  }
}
