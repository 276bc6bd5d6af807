//! The formats by sample, what is wrong with them, and bytes of any kind.

use super::{Format, Kind, Request, Trace, TraceReader, ValidationReader};
use proptest::prelude::*;

/// The first lines of tpcc-small.trace (MQSim project, MIT).
const MQSIM: &str = "938513000 4 264719034 16 0\n938828000 3 197570570 16 0\n938944000 13 93230992 32 1\n";
const MSR: &str = "128166372003061629,host,0,Read,7014609920,24576,41286\n\
                   128166372016382155,host,0,Write,1317441536,8192,1963\n";
const SPC: &str = "0,20941264,8192,W,0.551706\n1, 20939840 ,8192,r,0.554041,own\n";
const FIO2: &str = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 4096 8192\n/dev/sda wait 250 0\n\
                    /dev/sda write 0 512\n/dev/sda sync 0 0\n/dev/sda close\n";
const FIO3: &str =
    "fio version 3 iolog\n2 a add\n3 b add\n870 a open\n878 b write 1024 16384\n891 a read 0 512\n10001677 a close\n";
const BLKPARSE: &str = "  8,0    3        1     0.000000000   697  G   R 223490 + 8 [kjournald]\n\
                        \x20 8,0    3        2     0.000001829   697  Q   W 223490 + 8 [kjournald]\n\
                        \x20 8,0    3        0     0.000018047     0  m   N cfq697 insert\n\
                        \x20 8,16   1        2     0.000101829   697  Q FWFS 4096 + 16 [dd]\n\
                        \x20 8,0    3        5     0.000091829   697  Q  RA 12 + 1 [x y]\n\
                        \x20 8,0    3        6     0.000101900   697  Q FWS [kworker]\n\
                        \x20 8,0    3        7     0.000107000     0  C   W 223490 + 8 [0]\n\
                        CPU0 (8,0):\n Reads Queued:           1,        4KiB\t Writes Queued: 1\n";
const DISKSIM: &str = "0.000000 0 1024 8 0\n12.500000 1 77 16 1\n12.500001 0 9 1 42001\n";
const VALIDATE: &str =
    "R Hit    1975456   4  15362.00000  56074.00000\nW Miss   1975280   8   3024.00000  27896.50000\n";

const ALIBABA: &str = "419,W,8792731648,16384,1577808000000376\n1,R,4096,512,1577808000000391\n";
const TENCENT: &str = "1538323199,1055568,8,0,1283\n1538323200,24,16,1,1360\n";
const SYSTOR: &str = "Timestamp,Response,IOType,LUN,Offset,Size\n\
                      1487548800.000345000,0.000142000,R,4,1213441024,4096\n1487548800.5,,W,0,512,1024\n\
                      1487548800.6,0.1,,0,0,0\n";
const FIU: &str = "89966104257123 4892 syslogd 904265560 8 W 6 0 531e779fb2ab5ea3b0ff6bd0f05e8f2f\n\
                   89966104257999 4892 kjournald 16 16 R 8 16 ffffffffffffffffffffffffffffffff\n";

fn srt(records: &[Vec<u32>]) -> Vec<u8> {
    let mut bytes = b"$$TR_IOREC-1.3\ndisks = {\n 1 -> {\n sectorsize = 256,\n }\n};\n\x0c".to_vec();
    for record in records {
        bytes.extend(record.iter().flat_map(|word| word.to_be_bytes()));
    }
    bytes
}

fn record(sec: u32, usec: u32, kind: u32, sector: u32, flags: u32) -> Vec<u32> {
    let size = if kind == 4 { 60 } else { 56 };
    let mut words = vec![size, 4 << 16 | kind, sec, usec, 174, 19687, 4096, sector, 0x0800_0107, 4, 1, flags, 0, 1, 0];
    words.truncate(size as usize / 4);
    words
}

fn samples() -> Vec<(Format, Vec<u8>)> {
    vec![
        (Format::Mqsim, MQSIM.into()),
        (Format::Msr, MSR.into()),
        (Format::Spc, SPC.into()),
        (Format::Fio, FIO2.into()),
        (Format::Fio, FIO3.into()),
        (Format::Blkparse, BLKPARSE.into()),
        (Format::Disksim, DISKSIM.into()),
        (Format::DisksimValidate, VALIDATE.into()),
        (Format::Alibaba, ALIBABA.into()),
        (Format::Tencent, TENCENT.into()),
        (Format::Systor, SYSTOR.into()),
        (Format::Fiu, FIU.into()),
        (Format::HpSrt, srt(&[record(0, 5, 1, 1056, 0x1b), record(1, 0, 4, 2, 0), record(1, 7, 1, 8, 0x1a)])),
    ]
}

fn read(format: Option<Format>, bytes: &[u8]) -> Result<Vec<Request>, String> {
    Trace::read("t.trace", format, bytes).map(|t| t.requests.to_vec()).map_err(|e| e.to_string())
}

fn request(arrival_ns: u64, device: u32, lba: u64, bytes: u32, kind: Kind) -> Request {
    Request { arrival_ns, device, lba, bytes, kind, response_ns: None }
}

#[test]
fn each_format_matches_its_definition() {
    use Kind::{Read, Write};
    let of = |text: &str| read(None, text.as_bytes()).unwrap();
    assert_eq!(of(MQSIM)[0], request(938_513_000, 4, 264_719_034, 8192, Write));
    assert_eq!(of(MQSIM)[2].kind, Read);
    let first =
        Request { response_ns: Some(4_128_600), ..request(12_816_637_200_306_162_900, 0, 13_700_410, 24_576, Read) };
    assert_eq!(of(MSR)[0], first);
    assert_eq!(of(SPC)[0], request(551_706_000, 0, 20_941_264, 8192, Write));
    assert_eq!(of(SPC)[1], request(554_041_000, 1, 20_939_840, 8192, Read));
    assert_eq!(of(FIO2), [request(0, 0, 8, 8192, Read), request(250_000, 0, 0, 512, Write)]);
    assert_eq!(of(FIO3), [request(878_000, 1, 2, 16_384, Write), request(891_000, 0, 0, 512, Read)]);
    let sda = 8 << 20;
    let sorted = [
        request(1_829, sda, 223_490, 4096, Write),
        request(91_829, sda, 12, 512, Read),
        request(101_829, sda | 16, 4096, 8192, Write),
    ];
    assert_eq!(of(BLKPARSE), sorted);
    assert_eq!(of(DISKSIM)[1], request(12_500_000, 1, 77, 8192, Read));
    assert_eq!((of(DISKSIM)[0].kind, of(DISKSIM)[2].kind), (Write, Read));
    let alibaba = [
        request(1_577_808_000_000_376_000, 419, 17_173_304, 16_384, Write),
        request(1_577_808_000_000_391_000, 1, 8, 512, Read),
    ];
    assert_eq!(of(ALIBABA), alibaba);
    let tencent = [
        request(1_538_323_199_000_000_000, 1283, 1_055_568, 4096, Read),
        request(1_538_323_200_000_000_000, 1360, 24, 8192, Write),
    ];
    assert_eq!(of(TENCENT), tencent);
    let first = Request { response_ns: Some(142_000), ..request(1_487_548_800_000_345_000, 4, 2_370_002, 4096, Read) };
    assert_eq!(of(SYSTOR), [first, request(1_487_548_800_500_000_000, 0, 1, 1024, Write)]);
    let fiu = [
        request(89_966_104_257_123, 6 << 20, 904_265_560, 4096, Write),
        request(89_966_104_257_999, sda | 16, 16, 8192, Read),
    ];
    assert_eq!(of(FIU), fiu);
    let validated = of(VALIDATE);
    assert_eq!(validated[1].arrival_ns, 15_362_000 + 56_074_000);
    assert_eq!((validated[1].bytes, validated[1].response_ns), (4096, Some(3_024_000)));
    let measured: Vec<_> = ValidationReader::new("t", VALIDATE.as_bytes()).map(Result::unwrap).collect();
    assert_eq!((measured[1].service_ns, measured[1].pause_ns), (3_024_000, 27_896_500));
    let requests = read(None, &samples()[12].1).unwrap();
    let first = Request { response_ns: Some(19_687_000), ..request(5_000, 1, 528, 4096, Read) };
    assert_eq!(requests, [first, Request { arrival_ns: 1_000_007_000, lba: 4, kind: Write, ..first }]);
}

#[test]
fn the_format_is_detected_and_a_name_overrides_it() {
    for (format, bytes) in samples() {
        assert_eq!(TraceReader::new("t", None, &bytes[..]).ok().unwrap().format(), format);
    }
    // Times without a point and flags 0 and 1 alone are MQSim's, unless one says otherwise.
    let both = "5 0 100 8 1\n";
    assert_eq!(read(None, both.as_bytes()).unwrap()[0].arrival_ns, 5);
    assert_eq!(read(Some(Format::Disksim), both.as_bytes()).unwrap()[0].arrival_ns, 5_000_000);
    for unknown in ["hello world\n", "1 2 3\n", "\u{0}\u{1}\u{2}", "a,b,c,d\n"] {
        let error = read(None, unknown.as_bytes()).unwrap_err();
        assert!(
            error.contains("no known trace format begins with") && error.contains("alibaba, blkparse, disksim"),
            "{error}"
        );
    }
    assert!(read(None, b"").unwrap_err().contains("no request"));
    assert!(Format::from_name("srt", None).unwrap_err().to_string().contains("\"srt\""));
    assert_eq!(Format::from_name("auto", None).unwrap(), None);
    assert_eq!(Format::from_name("hp-srt", None).unwrap(), Some(Format::HpSrt));
}

#[test]
fn line_ends_of_other_systems_and_a_missing_last_one() {
    for (format, bytes) in samples() {
        if format == Format::HpSrt {
            continue;
        }
        let text = String::from_utf8(bytes.clone()).unwrap();
        let right = read(None, &bytes).unwrap();
        assert_eq!(read(Some(format), text.replace('\n', "\r\n").as_bytes()).unwrap(), right, "{format}");
        assert_eq!(read(Some(format), text.trim_end().as_bytes()).unwrap(), right, "{format}");
    }
}

#[test]
fn errors_name_file_position_text_and_expected_text() {
    for (format, good, bad, parts) in [
        (
            Format::Mqsim,
            MQSIM,
            "1 2 3 4",
            &["t.trace, line 4", "\"1 2 3 4\"", "five numbers", "there are 4", "cut off"][..],
        ),
        (Format::Mqsim, MQSIM, "938944001 4 2 16 0 7\n", &["there are 6", "3 requests read before it"]),
        (Format::Mqsim, MQSIM, "\n", &["line 4", "there are 0"]),
        (Format::Mqsim, MQSIM, "938944001 4 2 16 2\n", &["1 (read) or 0 (write)"]),
        (Format::Mqsim, MQSIM, "938944001 4 2 0 0\n", &["at least 1 sector"]),
        (Format::Mqsim, MQSIM, "938944001 4 2 8388608 0\n", &["size in sectors, 0 to 8388607"]),
        (Format::Mqsim, MQSIM, "938944001 -4 2 16 0\n", &["device number"]),
        (Format::Mqsim, MQSIM, "938944001 +4 2 16 0\n", &["device number"]),
        (Format::Mqsim, MQSIM, "938944001.5 4 2 16 0\n", &["arrival time in ns"]),
        (Format::Mqsim, MQSIM, "938943999 4 2 16 0\n", &["938944000 ns or later", "sort"]),
        (Format::Mqsim, MQSIM, "938944001 4 99999999999999999999 16 0\n", &["sector number"]),
        (Format::Msr, MSR, "128166372016382155,h,0,Trim,1,2,3\n", &["line 3", "Read or Write", "\"Trim\""]),
        (Format::Msr, MSR, "128166372016382155,h,0,Read,1,2", &["seven fields", "there are 6", "cut off"]),
        (Format::Spc, SPC, "0,1,512,W\n", &["line 3", "at least five fields", "there are 4"]),
        (Format::Spc, SPC, "0,1,512,W,0.1\n", &["sort"]),
        (Format::Spc, SPC, "0,1,0,W,9.1\n", &["at least 1 byte"]),
        (Format::Fio, FIO2, "/dev/sda frob 0 1\n", &["line 9", "\"frob\""]),
        (Format::Fio, FIO3, "10 a read 0 512\n", &["10001677 us or later"]),
        (Format::Fio, "", "fio version 9 iolog\n", &["line 1", "fio version 2 iolog"]),
        (Format::Disksim, DISKSIM, "99.0 0 1 1 zz\n", &["line 4", "hexadecimal"]),
        (Format::Disksim, DISKSIM, "1.0 0 1 1 0\n", &["sort"]),
        (Format::DisksimValidate, VALIDATE, "R Hot 1 1 1.0 1.0\n", &["line 3", "Hit, Miss", "\"Hot\""]),
        (Format::Blkparse, "", "8,0 1 1 0.5 7 D R 1 + 8 [x]\n", &["queue events (action Q)", "1 events"]),
        (Format::Blkparse, "", "8,0 1 1 0.5 7 Q R 1 8 [x]\n", &["line 1", "sector + sectors"]),
        (Format::Alibaba, ALIBABA, "1,X,0,512,5\n", &["line 3", "R or W as field 2", "\"X\""]),
        (Format::Alibaba, ALIBABA, "1,R,0,512\n", &["5 fields; there are 4"]),
        (Format::Tencent, TENCENT, "1538323200,24,16,2,1360\n", &["0 or 1 as field 4"]),
        (Format::Systor, SYSTOR, "1.0,0.1,R,1,-1,512\n", &["line 5", "an offset as field 5"]),
        (Format::Fiu, FIU, "5 1 a 8 99999999999 W 6 0 x\n", &["a size as field 5"]),
        (Format::Blkparse, "", "nonsense\n", &["line 1", "blkparse prints"]),
    ] {
        let error = read(Some(format), format!("{good}{bad}").as_bytes()).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{bad:?} gives {error:?}, without {part:?}");
        }
    }
    let error = read(Some(Format::Mqsim), b"1 2 3 4 0\n\xff\xfe\n").unwrap_err();
    assert!(error.contains("t.trace, line 2") && error.contains("UTF-8"), "{error}");
    let endless = vec![b'7'; 1 << 17];
    assert!(read(Some(Format::Mqsim), &endless).unwrap_err().contains("a line below 65536 bytes"));
    let error = super::open("/nowhere/x.trace", None).unwrap_err().to_string();
    assert!(error.contains("/nowhere/x.trace"), "{error}");
}

#[test]
fn errors_of_a_damaged_binary_trace_name_the_position() {
    let whole = srt(&[record(0, 5, 1, 1056, 1), record(1, 0, 1, 2, 0)]);
    let cut = read(None, &whole[..whole.len() - 6]).unwrap_err();
    let byte = whole.len() - 56;
    for part in [&format!("byte {byte}"), "56 bytes, of which 50", "cut off", "1 request read before it"] {
        assert!(cut.contains(part), "{cut}");
    }
    assert!(read(None, &whole[..30]).unwrap_err().contains("form feed"));
    for (index, value, part) in
        [(0, 12, "not 12"), (1, 9 << 16 | 1, "version 9"), (2, 0, "or later"), (6, 0, "at least 1 byte")]
    {
        let mut second = record(1, 0, 1, 2, 0);
        second[index] = value;
        second[3] = 0;
        let error = read(None, &srt(&[record(0, 5, 1, 1056, 1), second])).unwrap_err();
        assert!(error.contains(part) && error.contains(&format!("byte {byte}")), "{error}");
    }
}

#[test]
fn a_wrong_map_of_columns_names_the_column() {
    for (columns, part) in [
        ("", "time:UNIT, op, offset:UNIT"),
        ("time,op,offset,size", "time with its unit, such as time:us"),
        ("time:min,op,offset,size", "a unit of time: ns, 100ns, us, ms or s"),
        ("time:us,op,offset", "a column size"),
        ("time:us,op,offset,size,op", "\"op\" stands twice"),
        ("time:us,op:2=read,offset,size", "op, op:0=read or op:1=read"),
        ("time:us,op,offset:0B,size", "a unit of data"),
        ("time:us,op,offset,size,major", "major and minor together"),
        ("time:us,op,offset,size,device,major,minor", "either device"),
    ] {
        let error = Format::from_name("auto", Some(columns)).unwrap_err().to_string();
        assert!(error.contains(part), "{columns:?} gives {error:?}");
    }
    let long = format!("time:us,op,offset,size{}", ",-".repeat(13));
    assert!(Format::from_name("columns", Some(&long)).unwrap_err().to_string().contains("at most 16 columns"));
    assert!(Format::from_name("msr", Some("time:us,op,offset,size")).is_err());
    assert!(Format::from_name("columns", None).is_err());
}

#[test]
fn near_disorder_is_sorted_and_far_disorder_is_an_error() {
    let line = |t: u64| format!("{t},h,0,Read,0,512,1\n");
    let near: String = (0..20_000u64).map(|i| line(1000 + (i ^ 0x3f))).collect();
    let requests = read(None, near.as_bytes()).unwrap();
    assert_eq!(requests.len(), 20_000);
    assert!(requests.windows(2).all(|pair| pair[0].arrival_ns <= pair[1].arrival_ns));
    let far: String = (0..9_000u64).map(|i| line(10_000 + i)).chain([line(3)]).collect();
    let error = read(None, far.as_bytes()).unwrap_err();
    assert!(error.contains("line 9001") && error.contains("sort"), "{error}");
}

#[test]
fn a_summary_counts_what_is_there() {
    let mut summary = super::Summary::default();
    for request in read(None, b"0 0 0 8 1\n5 0 8 8 1\n7 1 16 8 0\n9 0 16 2 0\n").unwrap() {
        summary.add(&request);
    }
    assert_eq!((summary.requests, summary.reads, summary.writes(), summary.sequential), (4, 2, 2, 2));
    assert_eq!((summary.read_bytes, summary.written_bytes, summary.span_ns(), summary.end_lba), (8192, 5120, 9, 24));
    assert_eq!((summary.smallest_bytes, summary.largest_bytes, summary.devices.len()), (1024, 4096, 2));
}

/// Reads to the end; requests come in order, an error is the last item, and it can be printed.
fn drain(format: Option<Format>, bytes: &[u8]) {
    let Ok(reader) = TraceReader::new("t", format, bytes) else { return };
    let (mut last, mut failed) = (0, false);
    for item in reader {
        assert!(!failed, "an item after an error");
        match item {
            Ok(request) => {
                assert!(request.arrival_ns >= last && request.bytes > 0);
                last = request.arrival_ns;
            }
            Err(error) => {
                failed = true;
                assert!(!error.to_string().contains('\n'));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        drain(None, &bytes);
        for format in Format::ALL {
            drain(Some(format), &bytes);
        }
    }

    #[test]
    fn a_damaged_trace_is_read_or_refused(
        which in 0usize..13,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let (format, mut bytes) = samples().swap_remove(which);
        for (index, byte) in damage {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        drain(Some(format), &bytes);
        drain(None, &bytes);
        bytes.truncate(cut.index(bytes.len()));
        drain(Some(format), &bytes);
    }

    #[test]
    fn words_of_the_formats_in_any_order(words in prop::collection::vec(
        prop::sample::select(vec![
            "0", "1", "8,0", "Q", "R", "W", "+", "read", "wait", "a", "18446744073709551615", "0.5", "99999999999.9",
            ",", "Read", "Hit", "\n", "\n", " ", " ", "fio version 2 iolog\n", "fio version 3 iolog\n",
        ]), 0..60)) {
        let text = words.join(" ").replace(" \n ", "\n");
        for format in Format::ALL {
            drain(Some(format), text.as_bytes());
        }
        drain(None, text.as_bytes());
    }
}
